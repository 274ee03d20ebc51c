test("half a lunar day later", () => expect(next(0, 1)).toBe(745));
test("never before now", () => expect(next(0, 746)).toBe(1490));
