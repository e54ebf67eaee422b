package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/writ-project/writ/internal/mcp/rpc"
)

const (
	maxNoise   = 1000 // skipped lines in a row before a server is faulty (attack U04)
	tellQueue  = 64   // our notifications and answers waiting to be written
	stderrSize = 64 << 10
)

// stdio is a child process spoken to in lines.
type stdio struct {
	c    *conn
	proc *process

	turn   sync.Mutex // whose holder writes; a line that is left half written keeps it
	writes chan *call // taken by the writer: from then on it counts as sent
	tells  chan []byte
	told   atomic.Int64  // tells that are not written yet
	gone   chan struct{} // closed when the reader has delivered everything
	wg     sync.WaitGroup
	once   sync.Once
}

func startStdio(c *conn) error {
	proc, err := startProcess(&c.s.cfg)
	if err != nil {
		return err
	}
	l := &stdio{
		c: c, proc: proc,
		writes: make(chan *call), tells: make(chan []byte, tellQueue), gone: make(chan struct{}),
	}
	c.link = l
	l.wg.Go(l.read)
	l.wg.Go(l.write)
	l.wg.Go(func() { // the end of the process is the end of the connection
		<-proc.exited
		// A descendant outside the group may still hold the pipe.
		stop := c.s.clock.AfterFunc(c.s.limits.Grace, func() { proc.stdout.Close() })
		<-l.gone
		stop()
		c.die(errors.New("the server process ended"))
	})
	return nil
}

func (l *stdio) listen() {}

func (l *stdio) read() {
	defer close(l.gone)
	lim := &l.c.s.limits
	courier := l.c.s.courier
	lines := rpc.NewLines(&lineWatch{
		r: l.proc.stdout, clock: l.c.s.clock, limit: lim.LineTime,
		slow: func() {
			courier.event(SlowLine)
			l.c.die(errors.New("the server left a line unfinished"))
			l.proc.kill()
		},
	}, lim.Line)
	noise := 0
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, rpc.ErrLineTooLong):
			l.c.tooLong(line, nil)
			continue
		case err != nil: // a half line is no message
			if !errors.Is(err, io.EOF) {
				courier.event(SkippedLine)
			}
			l.c.die(errors.New("the server closed its output"))
			return
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if l.c.receive(line, nil, true) {
			noise = 0
			continue
		}
		courier.event(SkippedLine)
		if noise++; noise > maxNoise {
			courier.event(Noise)
			l.c.die(errors.New("the server writes something other than messages"))
			l.proc.kill()
			io.Copy(io.Discard, l.proc.stdout)
			return
		}
	}
}

// write sends what sendNow did not, one message at a time.
func (l *stdio) write() {
	say := func(msg []byte) {
		l.turn.Lock()
		defer l.turn.Unlock()
		l.put(oneLine(msg))
		l.told.Add(-1)
	}
	for {
		select {
		case msg := <-l.tells: // answers and cancellations first
			say(msg)
			continue
		default:
		}
		select {
		case msg := <-l.tells:
			say(msg)
		case k := <-l.writes:
			l.turn.Lock()
			if l.c.mayLeave(k) {
				l.put(oneLine(k.msg))
			} else {
				k.finish(held())
			}
			l.turn.Unlock()
		case <-l.c.dead:
			return
		}
	}
}

// put writes bytes, however long that takes; a child that does not read is killed. The
// caller holds turn.
func (l *stdio) put(b []byte) {
	stop := l.c.s.clock.AfterFunc(l.c.s.limits.Write, func() {
		l.c.s.courier.event(WriteStalled)
		l.c.die(errors.New("the server does not read its input"))
		l.proc.kill()
	})
	l.proc.stdin.Write(b) // a broken pipe is seen by the reader too
	stop()
}

// sendNow sends a call where nothing else is to be written first and the child has room
// for it, without waiting. It is false where nothing was sent.
func (l *stdio) sendNow(ctx context.Context, k *call) bool {
	if ctx.Err() != nil || !l.turn.TryLock() {
		return false
	}
	free := l.told.Load() == 0
	select {
	case <-l.c.dead:
		free = false
	default:
	}
	if free && !l.c.mayLeave(k) {
		k.finish(held())
		l.turn.Unlock()
		return true
	}
	line, n := oneLine(k.msg), 0
	if free {
		n = l.proc.writeNow(line)
	}
	if n == 0 || n == len(line) {
		l.turn.Unlock()
		return n > 0
	}
	go func() {
		defer l.turn.Unlock()
		l.put(line[n:])
	}()
	return true
}

// oneLine returns msg and a newline. Line breaks between tokens become spaces;
// inside strings JSON has none.
func oneLine(msg []byte) []byte {
	b := make([]byte, len(msg)+1)
	copy(b, msg)
	for i, x := range b[:len(msg)] {
		if x == '\n' || x == '\r' {
			b[i] = ' '
		}
	}
	b[len(msg)] = '\n'
	return b
}

func (l *stdio) tell(msg []byte) {
	l.told.Add(1)
	select {
	case l.tells <- msg:
		return
	case <-l.c.dead:
	default:
		l.c.s.courier.event(DroppedNotice)
	}
	l.told.Add(-1)
}

func (l *stdio) say(_ context.Context, msg []byte) error {
	l.tell(msg)
	return nil
}

func (l *stdio) exchange(ctx context.Context, k *call) Response {
	if !l.sendNow(ctx, k) {
		select {
		case l.writes <- k:
		case <-l.c.dead:
			return notSent("%s", l.c.cause())
		case <-ctx.Done():
			return notSent("%s", ended(ctx))
		}
	}
	select {
	case <-k.done:
		return k.reply
	case <-l.gone:
		if k.answered() { // its last words
			return k.reply
		}
		return unknown("%s", l.c.cause())
	case <-ctx.Done():
		if k.answered() {
			return k.reply
		}
		if !k.quiet {
			l.tell(rpc.Cancelled(k.id))
		}
		return unknown("%s", ended(ctx))
	}
}

func (l *stdio) close() {
	l.once.Do(func() {
		l.proc.end(l.c.s.clock, l.c.s.limits.Grace)
		l.wg.Wait()
		l.proc.release()
	})
}
