package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// process is one child in a process group of its own. Only the group's end is
// promised: a descendant that makes itself a session of its own escapes it.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr ring
	exited chan struct{} // the child was reaped and its group was killed
	errEnd chan struct{} // its standard error was read to the end
	errs   *os.File
}

// inherited are the only variables of this process a child gets unasked
// (attack U03): launchers such as npx do not start without them.
var inherited = []string{"PATH", "HOME"}

// Environment is that of the child.
func (cfg *Config) Environment() []string {
	env := []string{}
	for _, k := range append(slices.Clone(inherited), systemEnv...) {
		if v, ok := os.LookupEnv(k); ok {
			if _, set := cfg.Env[k]; !set {
				env = append(env, k+"="+v)
			}
		}
	}
	for k, v := range cfg.Env {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env
}

// startProcess starts the command: argv as it stands, no shell (attack U01).
func startProcess(cfg *Config) (*process, error) {
	p := &process{
		cmd:    exec.Command(cfg.Command[0], cfg.Command[1:]...),
		exited: make(chan struct{}), errEnd: make(chan struct{}),
	}
	p.cmd.Dir, p.cmd.Env = cfg.Dir, cfg.Environment()
	setAttributes(p.cmd)
	in, stdin, err := os.Pipe()
	stdout, out, oerr := os.Pipe()
	errs, errw, eerr := os.Pipe()
	ours, theirs := []*os.File{stdin, stdout, errs}, []*os.File{in, out, errw}
	closeAll := func(fs []*os.File) {
		for _, f := range fs {
			f.Close() // of none it is an error
		}
	}
	if cmp.Or(err, oerr, eerr) != nil {
		closeAll(ours)
		closeAll(theirs)
		return nil, errors.New("no pipe for the server process")
	}
	p.stdin, p.stdout, p.errs = stdin, stdout, errs
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errw

	started := make(chan error, 1)
	go func() {
		// The kernel's parent-death signal follows the thread that started the
		// child: that thread is kept for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		guarded(p.cmd.Process.Pid, true)
		waitAndKillGroup(p.cmd)
		guarded(p.cmd.Process.Pid, false)
		close(p.exited)
	}()
	if err := <-started; err != nil {
		closeAll(ours)
		closeAll(theirs)
		return nil, fmt.Errorf("cannot start the server's command %q: %w", filepath.Base(p.cmd.Args[0]), reason(err))
	}
	closeAll(theirs)
	go func() {
		defer close(p.errEnd)
		buf := make([]byte, 4096)
		for {
			n, err := errs.Read(buf)
			p.stderr.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return p, nil
}

// reason drops the path an exec error repeats.
func reason(err error) error {
	if ee, is := errors.AsType[*exec.Error](err); is {
		return ee.Err
	}
	if pe, is := errors.AsType[*os.PathError](err); is {
		return pe.Err
	}
	return err
}

// end stops the child as the protocol asks: EOF, then SIGTERM, then SIGKILL for
// the whole group, grace apart (attack U05).
func (p *process) end(clock Clock, grace time.Duration) {
	p.stdin.Close()
	if p.within(clock, grace) {
		return
	}
	p.signal(false)
	if p.within(clock, grace) {
		return
	}
	p.kill()
	<-p.exited
}

func (p *process) within(clock Clock, d time.Duration) bool {
	late := make(chan struct{})
	stop := clock.AfterFunc(d, func() { close(late) })
	defer stop()
	select {
	case <-p.exited:
		return true
	case <-late:
		return false
	}
}

func (p *process) kill() { p.signal(true) }

// signal reaches the group while its leader is not yet reaped, so that the
// number cannot belong to somebody else.
func (p *process) signal(kill bool) {
	select {
	case <-p.exited:
	default:
		signalGroup(p.cmd, kill)
	}
}

// release closes the pipes after the end. What the child said last is read first: it is in the pipe already, and
// only who left the group can still hold that open.
func (p *process) release() {
	p.stdout.Close()
	if p.errs.SetReadDeadline(time.Now().Add(time.Second)) == nil {
		<-p.errEnd
	}
	p.errs.Close()
	<-p.errEnd
}

// ring keeps the last stderrSize bytes (64 KiB) written to it.
type ring struct {
	mu  sync.Mutex
	buf []byte
}

func (r *ring) Write(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, b...)
	if over := len(r.buf) - stderrSize; over > 0 {
		r.buf = append(r.buf[:0], r.buf[over:]...)
	}
}

// Bytes returns a copy of what is kept.
func (r *ring) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.buf)
}
