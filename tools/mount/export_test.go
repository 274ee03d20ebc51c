package mount

// Trap has trap called at each step of each act, with what comes next: "open x".
func (f *FS) Trap(trap func(step string)) { f.trap = trap }
