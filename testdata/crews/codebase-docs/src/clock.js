// Next high water after a known one. A lunar day has 24 h 50 min and two tides.
export const next = (known, now) => {
  const tide = (24 * 60 + 50) / 2;
  return known + Math.ceil((now - known) / tide) * tide;
};
