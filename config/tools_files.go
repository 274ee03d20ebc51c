package config

// FileTools is which files of the mounts tools reach.
type FileTools struct {
	// HardLinks lets files through that have several names, one of which may lie
	// outside of the mount.
	HardLinks bool
}

type filesDocument struct {
	HardLinks bool `key:"hard_links"`
}
