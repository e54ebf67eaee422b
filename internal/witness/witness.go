// Package witness has the head of a log kept, and cosigned, by somebody else: it is the
// client's part of C2SP tlog-witness. A witness signs a head only if the log goes on from the
// one it signed last, so it is a place for the head that is on no machine of the log's, and
// who shows a cosigned checkpoint shows that there is one log for all.
//
// It trusts of a witness what its key signed, and that its operator chose it: a witness that
// lies can have a log refused, and never have one accepted that its other places refuse.
package witness

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/writ-project/writ/audit"
)

// ErrRolledBack says that the witness signed a head which this log does not go on from: it
// was rolled back, or the same key writes another log elsewhere.
var ErrRolledBack = fmt.Errorf("%w: the witness signed a head that this log does not go on from", audit.ErrAltered)

// Log is what a witness is shown of a log.
type Log interface {
	Checkpoint(ctx context.Context) ([]byte, error)
	Snapshot(ctx context.Context) (audit.Snapshot, error)
}

// Witness is one witness of one log. It is used by one goroutine at a time.
type Witness struct {
	url    string
	key    note.Verifier // of its cosignatures
	log    note.Verifier
	client *http.Client
	size   int64 // of the head it signed last, as far as it is known
}

// Bounds of an exchange, and of an answer.
const (
	patience   = 10 * time.Second
	mostAnswer = 64 << 10
	mostProof  = 63 // lines
	mostTries  = 3
)

// New returns the witness at a URL, the submission prefix of the protocol, whose
// cosignatures key verifies, for the log that the other key verifies.
func New(url string, key, log note.Verifier) *Witness {
	return &Witness{url: strings.TrimSuffix(url, "/") + "/add-checkpoint", key: key, log: log, client: &http.Client{Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Name is that of its key.
func (w *Witness) Name() string { return w.key.Name() }

// Size is how many records the log had that it signed last, as far as it said.
func (w *Witness) Size() int64 { return w.size }

// Show shows the witness the newest head of the log and returns it with its cosignature.
// The error is ErrRolledBack where it does not go on from what the witness signed last;
// audit.ErrNotFound where there is nothing to sign; any other says that it could not be asked.
func (w *Witness) Show(ctx context.Context, log Log) (cosigned []byte, err error) {
	for try := 1; ; try++ {
		msg, err := log.Checkpoint(ctx) // anew: another process may have shown a newer one
		if err != nil {
			return nil, err
		}
		head, err := audit.OpenCheckpoint(msg, w.log)
		if err != nil {
			return nil, err
		}
		conflict := int64(-1)
		if w.size <= head.Size {
			if cosigned, conflict, err = w.add(ctx, log, msg, head.Size); conflict < 0 {
				if err == nil {
					w.size = head.Size
				}
				return cosigned, err
			}
			if conflict == w.size {
				return nil, errors.New("it contradicts itself")
			}
			w.size = conflict
		}
		if try >= mostTries {
			if w.size > head.Size {
				return nil, ErrRolledBack
			}
			return nil, errors.New("another process shows it heads at the same time")
		}
	}
}

// add makes one request. conflict is the size that the witness says it signed last where
// that is not ours, -1 for any other answer.
func (w *Witness) add(ctx context.Context, log Log, msg []byte, size int64) (cosigned []byte, conflict int64, err error) {
	body := fmt.Appendf(nil, "old %d\n", w.size)
	if w.size > 0 && w.size < size {
		snap, err := log.Snapshot(ctx)
		if err != nil {
			return nil, -1, err
		}
		path, err := tlog.ProveTree(size, w.size, snap)
		snap.Close()
		if err != nil || len(path) > mostProof {
			return nil, -1, errors.Join(err, errors.New("the way to the head cannot be shown"))
		}
		for _, h := range path {
			body = append(base64.StdEncoding.AppendEncode(body, h[:]), '\n')
		}
	}
	body = append(append(body, '\n'), msg...)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, -1, errors.New("its address cannot be used")
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return nil, -1, errors.New("it does not answer")
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	switch {
	case err != nil || len(answer) > mostAnswer:
		return nil, -1, errors.New("its answer cannot be read")
	case resp.StatusCode == http.StatusOK:
		cosigned, err = audit.Cosigned(msg, answer, w.key)
		return cosigned, -1, err
	case resp.StatusCode == http.StatusConflict:
		if w.size == size && strings.TrimSpace(string(answer)) == strconv.FormatInt(size, 10) || w.size == size && len(answer) == 0 {
			return nil, -1, ErrRolledBack // of this size it signed another
		}
		text, ended := strings.CutSuffix(string(answer), "\n")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || !ended || strconv.FormatInt(n, 10) != text || resp.Header.Get("Content-Type") != "text/x.tlog.size" {
			return nil, -1, errors.New("it answers 409 without the size that it signed last")
		}
		return nil, n, nil
	case resp.StatusCode == http.StatusUnprocessableEntity && w.size > 0:
		return nil, -1, ErrRolledBack
	case resp.StatusCode == http.StatusNotFound:
		return nil, -1, errors.New("it does not know this log: its operator adds log.pub")
	}
	return nil, -1, fmt.Errorf("it answers with status %d", resp.StatusCode)
}
