package upstream

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// guardArg makes a process the guard. It stands where a subcommand would.
const guardArg = "__writ_guard"

// guard is a second process of this program that outlives a kill -9 of this
// one for as long as it takes to kill the process groups of the children
// (attack U05): the kernel's parent-death signal reaches a child, not what the
// child started. It knows nothing but group numbers.
var guard struct {
	mu      sync.Mutex
	enabled bool
	tried   bool
	in      *os.File
}

// GuardMain must be the first call of a main function that starts servers over
// stdio. In the guard process it does not return; everywhere else it only says
// that this program can be its own guard. Without it a kill -9 leaves what a
// child started to end by itself.
func GuardMain() {
	if len(os.Args) == 2 && os.Args[1] == guardArg {
		watch()
		os.Exit(0)
	}
	guard.mu.Lock()
	guard.enabled = hasGroups
	guard.mu.Unlock()
}

// watch follows "+number" and "-number" lines until the gateway is gone, and
// then kills the groups that are left.
func watch() {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	groups := map[int]bool{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		op, num, _ := strings.Cut(lines.Text(), " ")
		pid, err := strconv.Atoi(num)
		if err != nil || pid <= 1 {
			continue
		}
		if op == "+" {
			groups[pid] = true
		} else {
			delete(groups, pid)
		}
	}
	for pid := range groups {
		killGroup(pid)
	}
}

// guarded tells the guard that a group began or ended.
func guarded(pid int, alive bool) {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if !guard.enabled {
		return
	}
	if !guard.tried {
		guard.tried = true
		startGuard()
	}
	if guard.in == nil {
		return
	}
	op := "- "
	if alive {
		op = "+ "
	}
	if _, err := guard.in.WriteString(op + strconv.Itoa(pid) + "\n"); err != nil {
		guard.in.Close()
		guard.in, guard.tried = nil, false // a new one with the next child
	}
}

func startGuard() {
	exe, err := os.Executable()
	if err != nil {
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	cmd := exec.Command(exe, guardArg)
	cmd.Stdin, cmd.Env, cmd.Dir = r, []string{}, "/"
	ownGroup(cmd)
	err = cmd.Start()
	r.Close()
	if err != nil {
		w.Close()
		return
	}
	go reapGuard(cmd)
	guard.in = w
}

func reapGuard(cmd *exec.Cmd) { cmd.Wait() }
