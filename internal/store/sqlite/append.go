package sqlite

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/writ-project/writ/audit"
)

// job is one append. Whoever writes it sets err and first, and closes written once it is as durable as it has to be.
type job struct {
	session  string
	expected uint64
	entries  []audit.Entry
	durable  bool

	first   int64
	err     error
	written chan struct{}
}

// Append implements audit.Store.
func (s *Store) Append(ctx context.Context, session string, expected uint64, entries []audit.Entry) (int64, error) {
	return s.append(ctx, &job{session: session, expected: expected, entries: entries, durable: true})
}

// AppendUnsynced implements audit.Store: what it writes is in the journal, where
// every process reads it and the next sync of it, whoever's, makes it durable.
func (s *Store) AppendUnsynced(ctx context.Context, session string, expected uint64, entries []audit.Entry) (int64, error) {
	return s.append(ctx, &job{session: session, expected: expected, entries: entries})
}

func (s *Store) append(ctx context.Context, j *job) (int64, error) {
	if err := audit.CheckAppend(j.session, j.expected, j.entries); err != nil {
		return 0, err
	}
	end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	j.written = make(chan struct{})
	l := &s.unsynced
	if j.durable {
		l = &s.synced
	}
	s.queueing.Lock()
	l.queue = append(l.queue, j)
	lead := !l.leading
	l.leading = true
	s.queueing.Unlock()
	if lead {
		s.lead(l, j)
	}
	<-j.written
	if j.err != nil {
		return 0, j.err
	}
	return j.first, nil
}

// line is jobs that wait until they are written: all that gathered while others were.
type line struct {
	queue   []*job
	leading bool // somebody writes it
}

const maxGroup = 256 // jobs that share one frame

// lead writes a line, all that gathered in one frame, and syncs it where that is waited for, until
// own is written; then somebody else goes on.
func (s *Store) lead(l *line, own *job) {
	for {
		s.queueing.Lock()
		group := l.queue
		if len(group) > maxGroup {
			group = slices.Clone(group[:maxGroup])
			l.queue = l.queue[maxGroup:]
		} else {
			l.queue = nil
		}
		l.leading = len(group) > 0
		s.queueing.Unlock()
		if len(group) == 0 {
			return
		}
		s.commit(group)
		if group[0].durable {
			s.syncAll(group)
		}
		for _, j := range group {
			close(j.written)
		}
		if own != nil && slices.Contains(group, own) {
			s.queueing.Lock()
			l.leading = len(l.queue) > 0
			more := l.leading
			s.queueing.Unlock()
			if more {
				go s.lead(l, nil)
			}
			return
		}
	}
}

// syncAll syncs what was written of the jobs.
func (s *Store) syncAll(group []*job) {
	wrote := func(j *job) bool { return j.err == nil }
	if !slices.ContainsFunc(group, wrote) {
		return
	}
	if err := s.sync(); err != nil {
		for _, j := range group {
			j.err = cmp.Or(j.err, err)
		}
	}
}

// commit writes the jobs in one frame and sets their errors. If that does not fit, each is
// tried alone, so that one that does not fit fails alone; all else is the same for all.
func (s *Store) commit(group []*job) {
	err := s.transact(group)
	each := len(group) > 1 && errors.As(err, new(unfit))
	for i, j := range group {
		if each {
			err = s.transact(group[i : i+1])
			each = err == nil || errors.As(err, new(unfit))
		}
		if err != nil {
			j.err = err
		}
	}
}

// locked runs f while nobody else writes to the journal. sure says that it has to be in its place,
// which takes as long to look at as a tenth of what an unsynced append does: a signature
// soon follows that, and is sure.
func (s *Store) locked(sure bool, f func() error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.failed(); err != nil {
		return err
	}
	if err := s.journal.lock(s.opt.BusyTimeout); err != nil {
		return s.fails("lock the journal", err, false)
	}
	defer s.journal.unlock()
	if sure {
		if err := s.inPlace(); err != nil {
			return err
		}
	}
	return f()
}

// lockedAtEnd runs f as locked does, sure and once all that the journal holds is known.
func (s *Store) lockedAtEnd(ctx context.Context, f func() error) error {
	return s.locked(true, func() error {
		s.mu.Lock()
		err := s.catchUp(ctx, true)
		s.mu.Unlock()
		if err != nil {
			return s.fails("read the journal", err, false)
		}
		return f()
	})
}

// inPlace ends all writing where the file has not the journal's name any more: what is written to it is
// lost, and its lock keeps nobody away.
func (s *Store) inPlace() error {
	if fi, err := os.Lstat(s.journal.file.Name()); err != nil || !os.SameFile(fi, s.journal.own) {
		return s.fails("lock the journal", errGone, true)
	}
	return nil
}

// transact writes one frame of those jobs, of one line, that stand where they expect.
func (s *Store) transact(group []*job) error {
	durable := group[0].durable
	return s.locked(durable, func() error {
		ctx := context.Background()
		if durable {
			if err := s.compare(ctx); err != nil {
				return s.fails("compare with what is known elsewhere", err, false)
			}
		}
		s.mu.Lock()
		err := s.catchUp(ctx, true)
		at, ahead, tree, heads := s.journal.position, s.journal.ahead, s.known.tree, map[string]audit.Head{}
		for _, j := range group {
			heads[j.session] = s.known.heads[j.session]
		}
		if err == nil && at.end == 0 {
			err = errJournal // its header is gone
		}
		s.holding = err == nil
		s.mu.Unlock()
		if err != nil {
			return s.fails("read the journal", err, false)
		}
		f, appended := frame{mark: mark{size: tree.Size()}}, false
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			// Another process may have folded the frame already, and a reader of this one
			// followed it there: then it is known, and in no tail.
			if s.holding = false; appended && s.known.tree.Size() < f.size {
				s.journal.position = f.behind
				s.known.tree, s.known.root = tree, f.root
				maps.Copy(s.known.heads, heads)
				s.extend(&f)
			}
		}()
		for _, j := range group {
			j.first, j.err = f.size, nil
			head := heads[j.session]
			if head.N != j.expected {
				j.err = audit.ErrConflict
				continue
			}
			for i := range j.entries {
				e := &j.entries[i]
				f.items = append(f.items, audit.Item{Index: f.size, Session: j.session, N: e.N(), Leaf: e.Leaf(), Hashes: tree.Append(e.Leaf()), Values: e.Values()})
				f.size++
			}
			heads[j.session] = audit.Head{Session: j.session, N: head.N + uint64(len(j.entries)), Index: f.size - 1}
		}
		if len(f.items) == 0 {
			return nil
		}
		f.root = tree.Root()
		if durable {
			if err := s.sign(&f.mark); err != nil {
				return err
			}
		}
		if err := s.put(at, ahead, &f); err != nil {
			return err
		}
		appended = true
		if f.behind.end > s.opt.foldAt {
			s.foldSoon()
		} else if s.opt.Signer != nil && !durable && s.signing.CompareAndSwap(false, true) {
			s.signSoon()
		}
		return nil
	})
}

// put writes a frame at the end of the journal.
func (s *Store) put(at position, ahead bool, f *frame) error {
	b, err := at.frameOf(f, s.coder)
	if err != nil {
		return err
	}
	if hard, err := s.journal.put(b, at, ahead); err != nil {
		if at.end > s.opt.foldAt {
			s.foldSoon() // it makes room
		}
		return s.fails("write to the journal", err, hard)
	}
	return nil
}

// sign signs a head, where there is a signer.
func (s *Store) sign(m *mark) (err error) {
	if s.opt.Signer != nil && m.size > 0 {
		m.note, err = audit.SignCheckpoint(m.size, m.root, s.opt.Signer)
	}
	return err
}

// signWithin is how long what nobody syncs may stand unsigned.
const signWithin = 2 * time.Millisecond

// signSoon signs the head of what was written, once for all that comes meanwhile.
func (s *Store) signSoon() {
	end, err := s.begin(context.Background())
	if err != nil {
		s.signing.Store(false)
		return // closing signs it
	}
	time.AfterFunc(signWithin, func() {
		defer end()
		s.signing.Store(false)
		// Where it cannot be written the code vouches for it, and what follows is signed.
		s.signNow(context.Background())
	})
}

// unsigned returns the head of the log if it is not signed and can be. The caller holds
// s.mu.
func (s *Store) unsigned() (m mark, ok bool) {
	n := len(s.marks)
	if s.opt.Signer == nil || n == 0 || len(s.marks[n-1].note) > 0 {
		return m, false
	}
	return s.marks[n-1], true
}

// signNow signs the head of the log, unless it is.
func (s *Store) signNow(ctx context.Context) error {
	s.mu.Lock()
	err := s.catchUp(ctx, false)
	m, due := s.unsigned()
	s.mu.Unlock()
	if err != nil || !due || s.failed() != nil {
		return nil // who reads finds what is wrong
	}
	f := frame{mark: m}
	if err := s.sign(&f.mark); err != nil { // while others write
		return err
	}
	return s.lockedAtEnd(ctx, func() error {
		s.mu.Lock()
		m, due := s.unsigned()
		at, ahead := s.journal.position, s.journal.ahead
		s.mu.Unlock()
		if !due || at.end == 0 {
			return nil
		}
		if m.size != f.size || m.root != f.root {
			f = frame{mark: m}
			if err := s.sign(&f.mark); err != nil {
				return err
			}
		}
		if err := s.put(at, ahead, &f); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.journal.position == at { // else a reader found it already
			s.journal.position = f.behind
			s.extend(&f)
		}
		return nil
	})
}

// sync returns when what was written is durable.
func (s *Store) sync() error {
	if err := s.failed(); err != nil {
		return err
	}
	s.mu.Lock()
	at, head := s.journal.position, s.folded
	for _, m := range slices.Backward(s.marks) {
		if len(m.note) > 0 || s.opt.Signer == nil {
			head = m // what is not signed, not everybody can see
			break
		}
	}
	s.mu.Unlock()
	if !s.opt.noSync {
		if err := s.journal.Sync(); err != nil {
			return s.fails("sync the journal", err, true)
		}
		if err := s.journal.isSynced(at, head.size); err != nil {
			return s.fails("write to the journal", err, true)
		}
	}
	s.tell(head.note)
	return nil
}
