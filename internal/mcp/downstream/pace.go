package downstream

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// pace bounds how long a client may take of a server's time (D01): over the body of a request,
// over what is left of one that is being answered, and over one piece of an answer.
type pace struct{ sends, rest, piece time.Duration }

var unhurried = pace{sends: 30 * time.Second, rest: time.Second, piece: 30 * time.Second}

// pieceBytes are those of one piece.
const pieceBytes = 64 << 10

// of keeps a handler's clients to it. A handler may set deadlines of its own in their place.
func (p pace) of(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &paced{ResponseWriter: w, rc: http.NewResponseController(w), pace: p}
		out.rc.SetWriteDeadline(time.Time{}) // it was of the answer before
		if len(r.TransferEncoding) > 0 {
			// Should a Content-Length have stood beside it, no byte after this
			// request is read as another one (W12).
			w.Header().Set("Connection", "close")
		}
		if r.Body != http.NoBody {
			out.rc.SetReadDeadline(time.Now().Add(p.sends))
			out.body = &arriving{ReadCloser: r.Body, ctx: r.Context(), rc: out.rc}
			bodyComes(r.Context(), true)
			of := *r
			of.Body = out.body
			r = &of
		}
		h.ServeHTTP(out, r)
		out.answers() // with what its server writes now
		out.rc.SetWriteDeadline(time.Now().Add(p.piece))
	})
}

// arriving is the body of a request. Its server goes on reading from the connection once it
// is whole, and has no deadline for that: an answer may take long.
type arriving struct {
	io.ReadCloser
	ctx  context.Context
	rc   *http.ResponseController
	over bool // it is whole, or nothing more of it is waited for
}

func (b *arriving) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.over {
		b.over = true
		if err == io.EOF {
			b.rc.SetReadDeadline(time.Time{})
			bodyComes(b.ctx, false)
		}
	}
	return n, err
}

// paced writes an answer piece by piece.
type paced struct {
	http.ResponseWriter
	rc *http.ResponseController
	pace
	body *arriving   // nil where there is none, or what is left of it has its time
	own  atomic.Bool // the handler set a deadline
}

func (w *paced) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answers is called as the answer begins, before which its server reads what the handler left
// of the body: so a client that sends all of it before it reads is answered.
func (w *paced) answers() {
	if b := w.body; b != nil && !b.over {
		w.rc.SetReadDeadline(time.Now().Add(w.rest))
	}
	w.body = nil
	if !w.own.Load() {
		w.rc.SetWriteDeadline(time.Now().Add(w.piece))
	}
}

func (w *paced) SetWriteDeadline(t time.Time) error {
	w.own.Store(!t.IsZero())
	return w.rc.SetWriteDeadline(t)
}

func (w *paced) Write(b []byte) (n int, err error) {
	for first := true; first || len(b) > 0; first = false {
		w.answers()
		k, err := w.ResponseWriter.Write(b[:min(len(b), pieceBytes)])
		if n += k; err != nil {
			return n, err
		}
		b = b[k:]
	}
	return n, nil
}

// FlushError is for http.ResponseController.
func (w *paced) FlushError() error {
	w.answers()
	return w.rc.Flush()
}
