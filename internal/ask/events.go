package ask

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
)

// Event is one line of a run's event file; docs/formats.md describes it. It
// holds no text of the user, a planner or a server: ids, digests, and names of
// the operator's own files.
type Event struct {
	Version int         `json:"v"`
	Run     string      `json:"run"`
	N       int         `json:"n"` // counts from 1
	Time    time.Time   `json:"time"`
	Stage   claim.Stage `json:"stage"`
	// Outcome is passed, stopped or failed.
	Outcome string      `json:"outcome"`
	Code    writ.Code   `json:"code,omitempty"`
	Reason  writ.Reason `json:"reason,omitempty"`
	// Failures are the reasons of each failure: a pointer can hold a key that a
	// planner made up, so none stands here.
	Failures []writ.Reason `json:"failures,omitempty"`

	Request     *Digest        `json:"request,omitempty"` // policy_gate
	Class       string         `json:"class,omitempty"`
	Rule        string         `json:"rule,omitempty"`
	Session     string         `json:"session,omitempty"` // discovery
	Turn        string         `json:"turn,omitempty"`
	Servers     []string       `json:"servers,omitempty"`
	Unreachable []string       `json:"unreachable,omitempty"`
	Tools       *int           `json:"tools,omitempty"`
	Allowed     *int           `json:"allowed,omitempty"`  // allowlist
	Planner     string         `json:"planner,omitempty"`  // planner
	Output      *Digest        `json:"output,omitempty"`   // planner, grounding: what the model wrote
	Plan        claim.PlanType `json:"plan,omitempty"`     // plan_parse
	Tool        string         `json:"tool,omitempty"`     // plan_gate
	Decision    string         `json:"decision,omitempty"` // provenance
	Shadow      bool           `json:"shadow,omitempty"`
	Evidence    string         `json:"evidence,omitempty"` // call
	Result      *Digest        `json:"result,omitempty"`
	Typed       *Digest        `json:"typed,omitempty"`   // typed_output
	Summary     string         `json:"summary,omitempty"` // grounding
	Items       *int           `json:"items,omitempty"`
	Status      Status         `json:"status,omitempty"` // answer
}

// Digest names bytes without holding them. A short text can be guessed from its
// digest, which is why event files are for their owner alone.
type Digest struct {
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

func digest(b []byte) *Digest {
	sum := sha256.Sum256(b)
	return &Digest{hex.EncodeToString(sum[:]), len(b)}
}

// recorder writes one run's events, each before the next stage begins.
type recorder struct {
	run   string
	n     int
	f     *os.File
	clock func() time.Time
}

func newRecorder(dir string, clock func() time.Time) (*recorder, error) {
	var id [10]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	r := &recorder{run: "r_" + strings.ToLower(base32.StdEncoding.EncodeToString(id[:])), clock: clock}
	if dir == "" {
		return r, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	r.f, err = os.OpenFile(filepath.Join(dir, r.run+".jsonl"), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	return r, err
}

func (r *recorder) write(e Event) error {
	r.n++
	e.Version, e.Run, e.N, e.Time = 1, r.run, r.n, r.clock().UTC()
	if r.f == nil {
		return nil
	}
	b, err := json.Marshal(e)
	if err == nil {
		_, err = r.f.Write(append(b, '\n'))
	}
	return err
}

func (r *recorder) close() error {
	if r.f == nil {
		return nil
	}
	return r.f.Close()
}
