package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"crewhost/tools/mount"
)

// plan is what the helper is told: what it is to become, and what it may touch then.
type plan struct {
	Path    string   `json:"path"`
	Args    []string `json:"args"` // with the name of the program
	Rules   []rule   `json:"rules"`
	Network bool     `json:"network,omitempty"`
}

// rule is what may be done at a path of the host and below it.
type rule struct {
	Path string `json:"path"`
	May  may    `json:"may"`
	// Optional says that the path need not be there.
	Optional bool `json:"optional,omitempty"`
}

// may are rights, a bit each.
type may int

const (
	mayRead may = 1 << iota
	mayExecute
	mayWrite  // files that are there, and new ones
	mayRemove // and rename
)

// ConfineMain is what the helper runs, with the arguments behind those of
// [Config.Confine]: it gives up the rights that the plan does not name and becomes the
// program. It returns only where that fails. Nothing else should run in the process.
func ConfineMain(args []string) error {
	if len(args) != 1 {
		return errors.New("confining a program: there is no plan")
	}
	var p plan
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return fmt.Errorf("confining a program: %w", err)
	}
	return fmt.Errorf("confining a program: %w", become(p))
}

// CanConfine says why programs can't be confined on this system; nil: they can.
func CanConfine() error { return canConfine() }

// system are the rules of what every program needs: itself, libraries, and a few devices.
// Of /etc and /proc only what holds nothing of anybody's.
func system(program string, network bool) []rule {
	var rules []rule
	add := func(m may, paths ...string) {
		for _, p := range paths {
			rules = append(rules, rule{Path: p, May: m, Optional: true})
		}
	}
	add(mayRead|mayExecute, "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
	add(mayRead, "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path", "/etc/alternatives", "/etc/localtime", "/etc/timezone", "/etc/magic", "/etc/mime.types")
	add(mayRead|mayWrite, "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
	if network {
		add(mayRead, "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/run/systemd/resolve")
	}
	add(mayRead|mayExecute, program)
	if real, err := filepath.EvalSymlinks(program); err == nil {
		add(mayRead|mayExecute, real)
		// What is installed in a place of its own has its libraries beside it.
		if dir := filepath.Dir(real); filepath.Base(dir) == "bin" {
			add(mayRead|mayExecute, dir, filepath.Join(dir, "../lib"), filepath.Join(dir, "../lib64"), filepath.Join(dir, "../libexec"))
		}
	}
	return rules
}

// rulesOf are the rules of a mount whose folder is at physical. A rule holds for all that
// lies below, so where a part has fewer rights than the rest, the rest has as few.
func rulesOf(m mount.Mount, physical string, execute bool) []rule {
	least := func(at string, rights mount.Rights) may {
		out := mayOf(rights)
		for _, s := range m.Subs {
			if at == "" || strings.HasPrefix(s.Path, at+"/") {
				out &= mayOf(s.Rights)
			}
		}
		if execute {
			out |= mayExecute
		}
		return out
	}
	rules := []rule{{Path: physical, May: least("", m.Rights)}}
	for _, s := range m.Subs {
		r := rule{Path: filepath.Join(physical, filepath.FromSlash(s.Path)), May: least(s.Path, s.Rights), Optional: true}
		if !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	return rules
}

func mayOf(r mount.Rights) may {
	out := mayRead
	if r.CanWrite() {
		out |= mayWrite
	}
	if r.CanRemove() {
		out |= mayRemove
	}
	return out
}
