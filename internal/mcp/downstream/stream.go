package downstream

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"sync"
)

// Bounds of one answer's stream.
const (
	streamWaiting = 256     // messages that wait for a slow client
	streamKeep    = 1 << 20 // bytes kept for a client that went away
)

// stream is the answer to one POST: messages in order, the last of which is
// final. The Router fills it, and one goroutine of an HTTP exchange at a time empties it, so
// only that one touches the ResponseWriter (S16).
//
// On a connection that can come back (legacy, with an Mcp-Session-Id) a stream
// outlives its HTTP exchange, and is emptied further by a GET with
// Last-Event-ID.
type stream struct {
	id    [16]byte
	keep  bool // may be resumed
	quiet bool // the client takes no event stream: only the final message

	mu      sync.Mutex
	changed chan struct{} // closed at the next change; nil while nobody waits for it
	msgs    [][]byte      // msgs[0] has number base
	base    int
	bytes   int
	cursor  int // number of the next message to send
	reader  int // generation of the current reader
	readers int
	gone    bool   // there is no reader and none will come
	shown   bool   // a message went out with its event id
	first   func() // called with the first message that is not final, nil for nobody
	final   bool
	status  int // HTTP status if the final message goes alone
}

func newStream(keep, quiet bool) *stream {
	s := &stream{keep: keep, quiet: quiet}
	rand.Read(s.id[:])
	return s
}

func (s *stream) touch() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// change is closed at the next change. The caller holds s.mu.
func (s *stream) change() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// beginsWith has f called once a message comes that is not final. It does not wait.
func (s *stream) beginsWith(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = f
}

// send queues a message before the final one. It waits while the client is
// slow; without a client it drops what does not fit.
func (s *stream) send(ctx context.Context, message []byte) error {
	for {
		s.mu.Lock()
		switch {
		case s.gone || s.final || s.quiet:
			s.mu.Unlock()
			return errOver
		case s.base+len(s.msgs)-s.cursor < streamWaiting:
			s.add(message)
			if s.first != nil {
				s.first()
				s.first = nil
			}
			s.mu.Unlock()
			return nil
		case s.reader == 0:
			s.mu.Unlock()
			return errOver
		}
		wait := s.change()
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *stream) add(message []byte) {
	s.msgs = append(s.msgs, message)
	s.bytes += len(message)
	s.trim()
	s.touch()
}

// trim forgets sent messages: all of them, or for a resumable stream the oldest
// over the bound.
func (s *stream) trim() {
	for s.base < s.cursor && (!s.keep || s.bytes > streamKeep) {
		s.bytes -= len(s.msgs[0])
		s.msgs[0] = nil
		s.msgs = s.msgs[1:]
		s.base++
	}
}

// finish ends the stream; a nil message ends it without an answer.
func (s *stream) finish(message []byte, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.final, s.status = true, status
	if s.reader == 0 && s.bytes+len(message) > streamKeep {
		s.drop()
	}
	if message != nil && !s.gone {
		s.add(message)
	} else {
		s.touch()
	}
}

// attach makes the caller the reader, from message number from on (-1: where
// the last reader stood); the reader before it ends. It fails when that message
// is not kept any more.
func (s *stream) attach(from int) (reader int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from < 0 {
		from = s.cursor
	}
	if from < s.base || from > s.base+len(s.msgs) || s.gone {
		return 0, false
	}
	s.readers++
	s.reader, s.cursor = s.readers, from
	s.touch()
	return s.reader, true
}

// detach ends a reader. A stream that cannot be resumed is gone then.
func (s *stream) detach(reader int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != reader {
		return
	}
	s.reader = 0
	if !s.keep {
		s.drop()
	}
	s.touch()
}

func (s *stream) drop() {
	s.gone, s.msgs, s.bytes = true, nil, 0
}

// abandon ends a stream nobody will come back for.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader = 0
	s.drop()
	s.touch()
}

// next returns the next message of a reader. Without one, wait is closed at the
// next change; a nil wait is the end.
func (s *stream) next(reader int) (message []byte, number int, alone bool, status int, wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != reader || s.gone {
		return nil, 0, false, 0, nil
	}
	if s.cursor < s.base+len(s.msgs) {
		n := s.cursor
		message = s.msgs[n-s.base]
		alone = n == 0 && s.final && len(s.msgs) == 1
		return message, n, alone, s.status, nil
	}
	if s.final {
		return nil, 0, false, 0, nil
	}
	return nil, 0, false, 0, s.change()
}

// sent says that a message went out, shown that its event id did too.
func (s *stream) sent(reader, number int, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = s.shown || shown
	if s.reader == reader && s.cursor == number {
		s.cursor++
		s.trim()
		s.touch()
	}
}

func (s *stream) delivered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.final && s.cursor == s.base+len(s.msgs)
}

// over reports that nobody can come back for the stream: no event id went out,
// or it keeps nothing.
func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone || !s.shown
}

// eventID is opaque, and bound by a MAC to the connection it was sent on (S06).
func eventID(key []byte, conn string, stream [16]byte, number int) string {
	b := binary.BigEndian.AppendUint32(stream[:], uint32(number))
	return base64.RawURLEncoding.EncodeToString(append(b, eventMAC(key, conn, b)...))
}

func eventMAC(key []byte, conn string, b []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(conn))
	m.Write([]byte{0})
	m.Write(b)
	return m.Sum(nil)[:16]
}

func parseEventID(key []byte, conn, id string) (stream [16]byte, number int, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(b) != 36 || !hmac.Equal(b[20:], eventMAC(key, conn, b[:20])) {
		return stream, 0, false
	}
	copy(stream[:], b)
	return stream, int(binary.BigEndian.Uint32(b[16:])), true
}

type sse struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// startSSE sends the header fields and a comment, so that no proxy holds the
// stream back.
func startSSE(w http.ResponseWriter) (*sse, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	e := &sse{w, http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	return e, e.comment()
}

// event writes one message: an optional id, which is ours, and one data line.
func (e *sse) event(id string, message []byte) error {
	b := []byte("event: message\n")
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(b, "data: "...), oneLine(message)...)
	return e.put(append(b, "\n\n"...))
}

func (e *sse) comment() error { return e.put([]byte(":\n\n")) }

func (e *sse) put(b []byte) error {
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return e.rc.Flush()
}
