package witness

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/witness/standin"
)

// grows is a log in memory.
type grows struct {
	signer note.Signer
	tree   audit.Tree
	hashes []audit.Hash
	fails  error
}

func (g *grows) add(leaves ...string) {
	for _, l := range leaves {
		g.hashes = append(g.hashes, g.tree.Append([]byte(l))...)
	}
}

func (g *grows) Checkpoint(context.Context) ([]byte, error) {
	if g.fails != nil || g.tree.Size() == 0 {
		return nil, errors.Join(g.fails, audit.ErrNotFound)
	}
	return audit.SignCheckpoint(g.tree.Size(), g.tree.Root(), g.signer)
}

func (g *grows) Snapshot(context.Context) (audit.Snapshot, error) { return view{g.hashes}, nil }

type view struct{ hashes []audit.Hash }

func (v view) ReadHashes(at []int64) (out []audit.Hash, err error) {
	for _, i := range at {
		out = append(out, v.hashes[i])
	}
	return out, nil
}
func (view) Size() int64                                              { return 0 }
func (view) Root() (h audit.Hash)                                     { return h }
func (view) Scan(context.Context, int64) iter.Seq2[audit.Item, error] { return nil }
func (view) Checkpoints(context.Context) iter.Seq2[[]byte, error]     { return nil }
func (view) Blobs(context.Context) iter.Seq2[audit.Blob, error]       { return nil }
func (view) Close() error                                             { return nil }

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func rig(t *testing.T) (*grows, *standin.Witness, *Witness) {
	t.Helper()
	sk, vk, err := audit.GenerateKey(zeros{}, "writ.test/log")
	if err != nil {
		t.Fatal(err)
	}
	signer, _ := note.NewSigner(sk)
	verifier, _ := note.NewVerifier(vk)
	s, vkey := standin.New(verifier)
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.Close()
		if s.Odd != "" {
			t.Errorf("not as the protocol says: %q", s.Odd)
		}
	})
	key, err := audit.NewCosignatures(vkey)
	if err != nil {
		t.Fatal(err)
	}
	return &grows{signer: signer}, s, New(srv.URL+"/prefix/", key, verifier)
}

// TestShow: a witness signs what goes on from what it signed last, whoever asked it then,
// and what comes back is the checkpoint with its signature.
func TestShow(t *testing.T) {
	g, s, w := rig(t)
	ctx := t.Context()
	if _, err := w.Show(ctx, g); !errors.Is(err, audit.ErrNotFound) || s.Asked > 0 {
		t.Errorf("an empty log: %v", err)
	}
	for n := range 40 {
		g.add(slices.Repeat([]string{"leaf"}, 1+n%3)...)
		if n%5 == 0 {
			w.size = 0 // another process
		}
		for range 2 { // once more, with nothing new
			cosigned, err := w.Show(ctx, g)
			if err != nil || s.Last.Size != g.tree.Size() || w.Size() != g.tree.Size() {
				t.Fatalf("%d records: %v", g.tree.Size(), err)
			}
			if c, err := audit.OpenCheckpoint(cosigned, w.log); err != nil || c != s.Last {
				t.Fatalf("%q: %v", cosigned, err)
			}
			if n, err := note.Open(cosigned, note.VerifierList(w.key, w.log)); err != nil || len(n.Sigs) != 2 || len(n.UnverifiedSigs) != 0 {
				t.Fatalf("%q: %v", cosigned, err)
			}
		}
	}
	s.Lines = func(l string) string {
		return "— somebody.else/x " + base64.StdEncoding.EncodeToString(make([]byte, 76)) + "\n" + l
	}
	if cosigned, err := w.Show(ctx, g); err != nil || strings.Contains(string(cosigned), "somebody") {
		t.Errorf("beside another's: %q %v", cosigned, err)
	}
}

// TestRolledBack: a log that is shorter than what the witness signed, or another, is told
// from one that it merely cannot be asked about (L02, F12, F13).
func TestRolledBack(t *testing.T) {
	ctx := t.Context()
	g, s, w := rig(t)
	g.add("a", "b", "c", "d", "e")
	if _, err := w.Show(ctx, g); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string][]string{
		"shorter": {"a", "b", "c"}, "as long": {"a", "b", "c", "d", "x"}, "longer": {"a", "b", "x", "d", "e", "f", "g"},
	} {
		for _, known := range []int64{0, 5} {
			o := &grows{signer: g.signer}
			o.add(other...)
			w.size = known
			if _, err := w.Show(ctx, o); !errors.Is(err, ErrRolledBack) || !errors.Is(err, audit.ErrAltered) {
				t.Errorf("%s, known %d: %v", name, known, err)
			}
		}
	}
	if s.Last.Size != 5 {
		t.Error("the witness signed another")
	}
	w.size = 0
	g.add("f")
	if _, err := w.Show(ctx, g); err != nil {
		t.Errorf("what goes on: %v", err)
	}
	// Another process shows it heads while we ask: that is no roll-back.
	fast := &grows{signer: g.signer}
	fast.add("a", "b", "c", "d", "e", "f")
	s.Answer = func(http.ResponseWriter, *http.Request) bool {
		if s.Asked%2 == 1 {
			fast.add("more")
			s.Last = audit.Checkpoint{Origin: w.log.Name(), Size: fast.tree.Size(), Root: fast.tree.Root()}
		}
		return false
	}
	s.Asked = 0
	if _, err := w.Show(ctx, fast); err != nil {
		t.Errorf("overtaken: %v", err)
	}
}

// TestHostileWitness: whatever a witness answers, it vouches for nothing but by its own
// signature of this very head, and no answer is taken for a roll-back that is none.
func TestHostileWitness(t *testing.T) {
	ctx := t.Context()
	g, s, w := rig(t)
	g.add("a", "b", "c")
	before := &grows{signer: g.signer}
	before.add("a")
	old := audit.Checkpoint{Origin: w.log.Name(), Size: 1, Root: before.tree.Root()}
	other := standin.Witness{Name: s.Name, Log: s.Log}
	other.Key = ed25519.NewKeyFromSeed(make([]byte, 32))
	status := func(code int, kind, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Type", kind)
			rw.WriteHeader(code)
			io.WriteString(rw, body)
			return true
		}
	}
	now := audit.Checkpoint{Origin: w.log.Name(), Size: 3, Root: g.tree.Root()}
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"nothing":              status(200, "", ""),
		"no signature":         status(200, "", "hello\n"),
		"of an older head":     status(200, "", s.Sign(old, 1)),
		"of another key":       status(200, "", other.Sign(now, 1)),
		"with more behind":     status(200, "", s.Sign(now, 1)+"\nanother text\n"),
		"another text before":  status(200, "", "\n\n"+s.Sign(now, 1)),
		"without an end":       status(200, "", strings.TrimSuffix(s.Sign(now, 1), "\n")),
		"a time beyond":        status(200, "", s.Sign(now, 1<<63)),
		"without end":          status(200, "", strings.Repeat(s.Sign(now, 1), 1000)),
		"a conflict of words":  status(409, "text/x.tlog.size", "three\n"),
		"of no size":           status(409, "text/x.tlog.size", "\n"),
		"of a negative":        status(409, "text/x.tlog.size", "-1\n"),
		"of two spellings":     status(409, "text/x.tlog.size", "01\n"),
		"of another type":      status(409, "text/html", "1\n"),
		"a conflict with none": status(409, "text/x.tlog.size", "0\n"),
		"turning": func(rw http.ResponseWriter, r *http.Request) bool {
			return status(409, "text/x.tlog.size", fmt.Sprintf("%d\n", 1+s.Asked%2))(rw, r)
		},
		"a proof of nothing": status(422, "", ""),
		"it is not known":    status(404, "", ""),
		"elsewhere": func(rw http.ResponseWriter, r *http.Request) bool {
			http.Redirect(rw, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		},
		"broken": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	} {
		s.Lock()
		s.Answer, w.size, s.Asked = answer, 0, 0
		s.Unlock()
		cosigned, err := w.Show(ctx, g)
		s.Lock()
		asked := s.Asked
		s.Unlock()
		if err == nil || errors.Is(err, ErrRolledBack) || cosigned != nil || asked > mostTries {
			t.Errorf("%s: %q, %v, asked %d times", name, cosigned, err, asked)
		}
	}
	// It is dead.
	s.Lock()
	s.Answer = nil
	s.Unlock()
	w.url = "http://127.0.0.1:1/add-checkpoint"
	if _, err := w.Show(ctx, g); err == nil || errors.Is(err, ErrRolledBack) {
		t.Error(err)
	}
}

// FuzzNewCosignatures: no text is a witness's key but the one spelling of one.
func FuzzNewCosignatures(f *testing.F) {
	_, vkey := standin.New(nil)
	_, log, _ := audit.GenerateKey(zeros{}, "writ.test/log")
	for _, s := range []string{vkey, log, "", "+", "a+b+c", vkey + "=", vkey + "\n", " " + vkey, strings.ToUpper(vkey)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := audit.NewCosignatures(s)
		if (err == nil) && !strings.HasPrefix(s, fmt.Sprintf("%s+%08x+", v.Name(), v.KeyHash())) {
			t.Errorf("%q is %s+%08x", s, v.Name(), v.KeyHash())
		}
		if err == nil && v.Verify([]byte("text"), make([]byte, 72)) {
			t.Errorf("%q signs everything", s)
		}
	})
}
