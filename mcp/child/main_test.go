//go:build linux || darwin

package child

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, where the test binary is started again as "child
// KIND …", one of the programs that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(program(os.Args[2], os.Args[3:]))
	}
	goleak.VerifyTestMain(m)
}

// program is what a child of the tests does. Each says "ready KIND PID" on
// stdout when it has done what it is there for.
func program(kind string, args []string) int {
	ready := func() { fmt.Printf("ready %s %d\n", kind, os.Getpid()) }
	switch kind {
	case "polite": // leaves at the end of its stdin
		ready()
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Println("bye")
	case "odd": // has a name that looks like the fields behind it
		rename(") Z 1 1 1")
		ready()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "term": // leaves on SIGTERM alone
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		ready()
		<-term
		return 7
	case "stubborn": // reads nothing and leaves only when killed
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		ready()
		never := make(chan os.Signal, 1)
		signal.Notify(never, syscall.SIGUSR2)
		<-never
	case "flood": // writes 64 MiB to stderr before it is ready
		line := bytes.Repeat([]byte("x"), 1023)
		w := bufio.NewWriterSize(os.Stderr, 64<<10)
		for range 64 << 10 {
			w.Write(line)
			w.WriteByte('\n')
		}
		w.WriteString("last words\n")
		w.Flush()
		ready()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "fail": // ends by itself, with a reason
		fmt.Fprint(os.Stderr, strings.Repeat("reading on\n", 5000), "no such folder\n")
		return 3
	case "echo": // says how it was started
		dir, _ := os.Getwd()
		_ = json.NewEncoder(os.Stdout).Encode(echo{Args: args, Env: os.Environ(), Dir: dir})
	case "wrap": // starts another, as npx does
		return wrap(args)
	case "guard":
		if err := GuardMain(os.Stdin); err != nil {
			return 1
		}
	case "host":
		return host(args)
	case "busy":
		return busy(args)
	default:
		fmt.Fprintln(os.Stderr, "unknown kind", kind)
		return 1
	}
	return 0
}

type echo struct {
	Args, Env []string
	Dir       string
}

// wrap starts a grandchild of the kind that follows the flags and waits for it.
func wrap(args []string) int {
	flags := flag.NewFlagSet("wrap", flag.ExitOnError)
	leave := flags.Bool("leave", false, "don't wait, exit with status 5")
	setsid := flags.Bool("setsid", false, "the grandchild leads a session of its own")
	bare := flags.Bool("bare", false, "the grandchild has no environment")
	_ = flags.Parse(args)
	signal.Ignore(syscall.SIGTERM)
	cmd := exec.Command(os.Args[0], append([]string{"child"}, flags.Args()...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: *setsid}
	if *bare {
		cmd.Env = []string{}
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("ready wrap %d\n", os.Getpid())
	if *leave {
		return 5
	}
	_ = cmd.Wait()
	return 0
}

// host starts a guard, if told so, and then trees, one for each argument, whose
// words are a kind with its arguments. It says all their pids and waits to be
// killed.
func host(args []string) int {
	guarded, args := args[0] == "guarded", args[1:]
	var guard *Guard
	if guarded {
		var err error
		if guard, err = StartGuard(self("guard")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Printf("ready guard %d\n", guard.proc.Pid)
	}
	for _, arg := range args {
		argv := self(strings.Fields(arg)...)
		p, err := Start(context.Background(), Config{Command: argv[0], Args: argv[1:], Env: os.Environ(), Guard: guard})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// As many are ready as there are kinds: "wrap … wrap … polite" has
		// three.
		lines := bufio.NewReader(p.Stdout())
		for range kinds(arg) {
			line, err := lines.ReadString('\n')
			if err != nil {
				fmt.Fprintln(os.Stderr, arg, err)
				return 1
			}
			fmt.Print(line)
		}
	}
	fmt.Println("ready all 0")
	forever := make(chan os.Signal, 1)
	signal.Notify(forever, syscall.SIGUSR2)
	<-forever
	return 0
}

// busy is a host that starts trees of the given kind with a guard, several at a
// time, and closes every other one, until it is killed.
func busy(args []string) int {
	guard, err := StartGuard(self("guard"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				argv := self(args...)
				p, err := Start(context.Background(), Config{
					Command: argv[0], Args: argv[1:], Env: os.Environ(), Guard: guard, ShutdownTimeout: time.Millisecond,
				})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				_, _ = bufio.NewReader(p.Stdout()).ReadString('\n')
				fmt.Printf("ready busy %d\n", p.Pid())
				if i%2 == 0 {
					_ = p.Close()
				}
			}
		})
	}
	wg.Wait()
	return 0
}

// self is the argument list that starts the test binary as the given program.
func self(kind ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{exe, "child"}, kind...)
}

// kinds is the number of processes that a line of words starts.
func kinds(line string) int {
	n := 0
	for _, word := range strings.Fields(line) {
		if !strings.HasPrefix(word, "-") {
			n++
		}
	}
	return n
}

// readyPids reads n lines "ready KIND PID" and returns the processes by kind.
func readyPids(t *testing.T, r io.Reader, n int) map[string]process {
	t.Helper()
	found := make(map[string]process)
	lines := bufio.NewReader(r)
	for range n {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for %d processes, have %v: %v", n, found, err)
		}
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "ready" {
			t.Fatalf("unexpected line %q", line)
		}
		pid, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		p, _ := look(pid)
		name := words[1]
		for i := 2; ; i++ {
			if _, taken := found[name]; !taken {
				break
			}
			name = words[1] + strconv.Itoa(i)
		}
		found[name] = p
	}
	return found
}

func alive(p process) bool {
	now, ok := look(p.pid)
	return ok && now.start == p.start && !now.dead
}
