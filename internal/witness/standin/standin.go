// Package standin is a witness for tests: the server's part of C2SP tlog-witness.
package standin

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/writ-project/writ/audit"
)

// Witness is a witness as the text of C2SP tlog-witness says one is, of one log.
type Witness struct {
	sync.Mutex // held while it answers, and by who looks at it beside that

	Name   string
	Key    ed25519.PrivateKey
	Log    note.Verifier    // nil for one that knows no log
	Last   audit.Checkpoint // that it signed
	Asked  int
	Odd    string                                            // a request that is none of the protocol
	Answer func(w http.ResponseWriter, r *http.Request) bool // before it; true where that was all
	Lines  func(string) string                               // of what it answers
}

// New returns one, and its key as it is written.
func New(log note.Verifier) (s *Witness, vkey string) {
	s = &Witness{Name: "witness.example/w1", Key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)), Log: log}
	raw := append([]byte{4}, s.Key.Public().(ed25519.PublicKey)...)
	return s, fmt.Sprintf("%s+%08x+%s", s.Name, s.hash(), base64.StdEncoding.EncodeToString(raw))
}

func (s *Witness) hash() uint32 {
	sum := audit.Sum([]byte(s.Name + "\n\x04" + string(s.Key.Public().(ed25519.PublicKey))))
	return binary.BigEndian.Uint32(sum[:4])
}

func (s *Witness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	s.Asked++
	if s.Answer != nil && s.Answer(w, r) {
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/prefix/add-checkpoint" {
		s.Odd = r.Method + " " + r.URL.String()
	}
	b, _ := io.ReadAll(r.Body)
	head, msg, ok := strings.Cut(string(b), "\n\n")
	lines := strings.Split(head, "\n")
	text, isOld := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseInt(text, 10, 64)
	if !ok || !isOld || err != nil || strconv.FormatInt(old, 10) != text || len(lines) > 64 {
		s.Odd = string(b)
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		h, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(h) != 32 {
			s.Odd = string(b)
		}
		proof = append(proof, tlog.Hash(h))
	}
	if s.Log == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	c, err := audit.OpenCheckpoint([]byte(msg), s.Log)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusForbidden)
	case old > c.Size:
		w.WriteHeader(http.StatusBadRequest)
	case old != s.Last.Size, old == c.Size && s.Last.Root != c.Root:
		w.Header().Set("Content-Type", "text/x.tlog.size")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, "%d\n", s.Last.Size)
	case old == 0 && len(proof) > 0, old > 0 && old < c.Size && tlog.CheckTree(proof, c.Size, c.Root, old, s.Last.Root) != nil, old == c.Size && len(proof) > 0:
		w.WriteHeader(http.StatusUnprocessableEntity)
	default:
		s.Last = c
		lines := s.Sign(c, 1700000000)
		if s.Lines != nil {
			lines = s.Lines(lines)
		}
		io.WriteString(w, lines)
	}
}

// Sign returns its line on a checkpoint.
func (s *Witness) Sign(c audit.Checkpoint, at uint64) string {
	sig := binary.BigEndian.AppendUint32(nil, s.hash())
	sig = binary.BigEndian.AppendUint64(sig, at)
	sig = append(sig, ed25519.Sign(s.Key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, c))...)
	return fmt.Sprintf("— %s %s\n", s.Name, base64.StdEncoding.EncodeToString(sig))
}
