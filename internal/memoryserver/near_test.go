package memoryserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/model"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

// meanings are what the stand-in for a model knows: words of one line mean the same.
var meanings = [][]string{{"doctor", "physician"}, {"money", "paid", "cash"}, {"cat", "kitten"}, {"noon", "midday"}}

// standIn is an endpoint that gives vectors, on loopback. It keeps what it was sent.
type standIn struct {
	*httptest.Server
	mu      sync.Mutex
	sent    []string
	answers http.HandlerFunc // in place of its own, nil for those
	refuses string           // a request with it in a text
}

func newStandIn(t *testing.T) *standIn {
	s := &standIn{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.sent = append(s.sent, in.Input...)
		answers, refuses := s.answers, s.refuses
		s.mu.Unlock()
		if answers != nil {
			answers(w, r)
			return
		}
		if refuses != "" && strings.Contains(strings.Join(in.Input, "\n"), refuses) {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		type datum struct {
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		}
		var out struct {
			Data []datum `json:"data"`
		}
		for i, text := range in.Input {
			v := make([]float64, len(meanings)+1)
			v[len(meanings)] = 0.01
			for m, words := range meanings {
				for _, w := range words {
					v[m] += float64(strings.Count(strings.ToLower(text), w))
				}
			}
			out.Data = append(out.Data, datum{i, v})
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *standIn) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *standIn) set(answers http.HandlerFunc, refuses string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.refuses = answers, refuses
}

// nearness is what finds by a stand-in, has time, and pauses after no failure.
func (s *standIn) nearness() *Nearness {
	n := NewNearness("model", model.NewEmbedder(model.Endpoint{URL: s.URL, Model: "model"}).Embed)
	n.pause, n.waits = 0, time.Minute
	return n
}

type nearRig struct {
	t    *testing.T
	o    Options
	path string
	k    *Keeper
}

func newNearRig(t *testing.T, n *Nearness) *nearRig {
	t.Helper()
	signer, _ := storetest.Key()
	path := filepath.Join(t.TempDir(), "snapshots")
	dir, err := snapshot.Open(path, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	r := &nearRig{t, Options{Store: mapstore.New(signer), Namespace: "default", Policy: policy(t), Mode: memory.Hardened, Clock: ticking(), Snapshots: dir, Nearness: n}, path, nil}
	if err := r.o.Intake.AddSecret("tok-4f9a1c"); err != nil {
		t.Fatal(err)
	}
	r.open()
	return r
}

func (r *nearRig) open() *Keeper {
	r.t.Helper()
	k, err := Open(r.t.Context(), r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.k = k
	return k
}

func (r *nearRig) tell(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		c, p := said("agent", fmt.Sprintf("o%d", r.k.state.Head()), text)
		switch {
		case strings.HasPrefix(text, "They say"):
			c.Captured[0].Label = writ.External
		case strings.HasPrefix(text, "I think"): // a claim comes with it
			c.Captured, p = nil, writ.Proposal{ToolName: memory.ToolRemember, Payload: []byte(fmt.Sprintf(`{"text":%q,"about":"cat: likes"}`, text))}
		}
		if o, err := r.k.Propose(r.t.Context(), c, p); err != nil || o.Rejection != nil {
			r.t.Fatalf("%v %+v", err, o)
		}
	}
}

// recall is the answer to a query, once nothing is being embedded.
func (r *nearRig) recall(query string) string {
	r.t.Helper()
	q := question{ctx: r.t.Context(), s: NewServer(r.k, Full), by: gateway.Caller{Principal: "agent"}, args: arguments{Query: query}}
	out, err := recall(&q)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := json.Marshal(out)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.k.o.Nearness != nil {
		r.k.o.Nearness.filled.Wait()
	}
	return string(b)
}

func (r *nearRig) file() []byte {
	b, err := os.ReadFile(filepath.Join(r.path, r.k.onDisk()))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return b
}

var nearTold = []string{"The doctor is Miller.", "The cat is grey.", "All is paid at midday.", "They say the kitten is ill.", "The token is tok-4f9a1c, for cash.", "I think the cat likes fish."}

// TestNearness: what means what is asked for is found though it has no word of it,
// behind the gate; what is sent holds no secret; a process after this one asks for no
// text again; an erasure takes the vector too.
func TestNearness(t *testing.T) {
	s := newStandIn(t)
	r := newNearRig(t, s.nearness())
	r.tell(nearTold...)
	if got := s.texts(); len(got) > 0 {
		t.Fatalf("sent before anybody asked: %q", got)
	}
	if got := r.recall("physician"); strings.Contains(got, "Miller") {
		t.Fatalf("found before there is a vector: %s", got)
	}
	got := r.recall("physician")
	if !strings.Contains(got, `"text":"The doctor is Miller.","from":"toy/agent","on":"2026-11-21","found_by":"meaning"`) || strings.Contains(got, "They say") {
		t.Fatal(got)
	}
	if got := r.recall("which kitten with tok-4f9a1c"); !strings.Contains(got, `{"reason":"reported","count":1}`) || strings.Contains(got, "They say") || !strings.Contains(got, "grey") {
		t.Fatal(got)
	}
	sent := s.texts()
	if all := strings.Join(sent, "\n"); strings.Contains(all, "tok-4f9a1c") || strings.Count(all, "Miller") != 1 || strings.Count(all, memory.Mark) != 2 {
		t.Fatalf("%q", sent)
	}
	if st := r.k.o.Nearness.Status(); st != (NearnessStatus{Texts: 6, Queries: 3}) {
		t.Fatalf("%+v", st)
	}

	// Another process, which is told one thing more.
	r.o.Nearness = s.nearness()
	r.open()
	if got := r.recall("physician"); !strings.Contains(got, "Miller") {
		t.Fatalf("the first query of a process: %s", got)
	}
	r.tell("I think the physician is away.")
	r.k.o.Nearness.filled.Wait()
	if got := s.texts()[len(sent):]; !slices.Equal(got, []string{"physician", "I think the physician is away."}) {
		t.Fatalf("sent again: %q", got)
	}
	// Vectors made with something else are none.
	r.o.Nearness = NewNearness("another", nil)
	r.o.Nearness.pause = time.Hour
	r.o.Nearness.embed = s.nearness().embed
	r.open()
	r.k.o.Nearness.mu.Lock()
	r.k.loadVectors()
	r.k.o.Nearness.mu.Unlock()
	if st := r.k.o.Nearness.Status(); st.Texts != 0 {
		t.Fatalf("%+v", st)
	}

	// What waits to be looked at is not written, and counts as not on disk.
	r.o.Nearness = s.nearness()
	r.open()
	r.recall("physician")
	n := r.k.o.Nearness
	n.waiting, n.unsaved = []string{"obs_2"}, len(n.rows)+1
	if sum := []byte(n.rows["obs_2"].sum); !r.k.saveVectors(true) || bytes.Contains(r.file(), sum) || len(r.file()) == 0 || n.unsaved != 1 {
		t.Fatalf("%d bytes on disk, %d unsaved", len(r.file()), n.unsaved)
	}

	// An operator's process erases, one that searches by words alone.
	r.o.Nearness = s.nearness()
	gateway := r.open()
	r.recall("physician")
	before := r.file()
	gateway.o.Nearness.mu.Lock()
	sum := []byte(gateway.o.Nearness.rows["obs_2"].sum)
	gateway.o.Nearness.mu.Unlock()
	if !bytes.Contains(before, sum) {
		t.Fatal("the vector is not on disk, and nothing shows that it goes")
	}
	r.o.Nearness = nil
	d, err := r.open().Operate(t.Context(), "operator:1", memory.CommandErase, []byte(`{"observation_ids":["obs_2"],"reason":"asked"}`))
	if err != nil || d.Outcome.Rejection != nil {
		t.Fatalf("%v %+v", err, d.Outcome.Rejection)
	}
	if len(r.file()) > 0 {
		t.Fatal("the vectors are there after an erasure")
	}
	r.k = gateway
	if got := r.recall("doctor"); strings.Contains(got, "Miller") || !strings.Contains(got, "away") {
		t.Fatal(got)
	}
	if b := r.file(); len(b) == 0 || bytes.Contains(b, sum) || gateway.o.Nearness.Status().Texts != 6 {
		t.Fatalf("%d bytes on disk, %+v", len(b), gateway.o.Nearness.Status())
	}
	// One that another process left behind loses what is gone where it is read.
	r.o.Nearness = s.nearness()
	r.open()
	if err := os.WriteFile(filepath.Join(r.path, gateway.onDisk()), before, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.recall("doctor"); strings.Contains(got, "Miller") {
		t.Fatal(got)
	}
	if b := r.file(); len(b) == 0 || bytes.Contains(b, sum) {
		t.Fatalf("%d bytes on disk", len(b))
	}
}

// A file with what is gone, that another process left, is written anew with all else.
func TestNearnessLeft(t *testing.T) {
	s := newStandIn(t)
	r := newNearRig(t, s.nearness())
	for i := range mostLooked + 7 {
		r.tell(fmt.Sprintf("The cat has number %d.", i))
	}
	r.recall("kitten")
	before := r.file()
	r.o.Nearness = nil
	if d, err := r.open().Operate(t.Context(), "operator:1", memory.CommandErase, []byte(`{"observation_ids":["obs_9"],"reason":"asked"}`)); err != nil || d.Outcome.Rejection != nil {
		t.Fatalf("%v %+v", err, d.Outcome.Rejection)
	}
	r.o.Nearness = s.nearness()
	if r.open(); os.WriteFile(filepath.Join(r.path, r.k.onDisk()), before, 0o600) != nil {
		t.Fatal("the file cannot be written")
	}
	r.recall("kitten")
	sent := len(s.texts())
	r.o.Nearness = s.nearness()
	r.open()
	r.recall("kitten")
	if st := r.k.o.Nearness.Status(); st.Texts != mostLooked+6 || len(s.texts()) != sent+1 {
		t.Fatalf("%+v, %d texts sent again", st, len(s.texts())-sent-1)
	}
}

// TestNearnessFails: an endpoint that is dead, slow or lies costs what it would have
// found, a second at most, and nothing else: the answer is that of the words, to the byte.
func TestNearnessFails(t *testing.T) {
	plain := newNearRig(t, nil)
	plain.tell(nearTold...)
	const ask = "doctor, physician or cat"
	want := plain.recall(ask)
	vectors := func(vs string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"data":[`+vs+`]}`)
		}
	}
	hang := make(chan struct{})
	defer close(hang)
	for name, answers := range map[string]http.HandlerFunc{
		"500":             func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 500) },
		"hung up":         func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"another length":  vectors(`{"index":0,"embedding":[1,2]}`),
		"nothing":         vectors(``),
		"two for one":     vectors(`{"index":0,"embedding":[1,2,3,4,5]},{"index":1,"embedding":[1,2,3,4,5]}`),
		"no direction":    vectors(`{"index":0,"embedding":[0,0,0,0,0]}`),
		"no number":       vectors(`{"index":0,"embedding":[0,0,0,0,NaN]}`),
		"beyond a number": vectors(`{"index":0,"embedding":[0,0,0,0,1e300]}`),
		"no answer": func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		},
	} {
		for _, since := range []string{"ever", "now"} {
			if name == "no answer" && since == "ever" {
				continue // the texts have a minute
			}
			s := newStandIn(t)
			n := s.nearness()
			r := newNearRig(t, n)
			r.tell(nearTold...)
			if since == "ever" {
				s.set(answers, "")
			}
			r.recall(ask)
			s.set(answers, "")
			if name == "no answer" {
				n.waits = 100 * time.Millisecond
			}
			if got := r.recall(ask); got != want {
				t.Errorf("%s since %s: %s, want %s", name, since, got, want)
			}
			n.waits = time.Minute
			if st := n.Status(); since == "now" && (st.Alone != 1 || st.Fault == "") || since == "ever" && st.Texts > 0 && name != "another length" {
				t.Errorf("%s since %s: %+v", name, since, st)
			}
			// It comes back by itself, unless what it said first fits nothing it says now.
			s.set(nil, "")
			r.recall(ask)
			if got := r.recall("kitten"); !strings.Contains(got, "grey") && (name != "another length" || since != "ever") {
				t.Errorf("%s since %s, and then: %s %+v", name, since, got, n.Status())
			}
		}
	}
	// While it rests nothing is sent.
	s := newStandIn(t)
	n := s.nearness()
	r := newNearRig(t, n)
	r.tell(nearTold...)
	r.recall(ask)
	n.pause = time.Hour
	s.set(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 500) }, "")
	sent := len(s.texts())
	if got, again := r.recall(ask), r.recall(ask); got != want || again != want || n.Status().Alone != 2 || len(s.texts()) != sent+1 {
		t.Errorf("%s, %s, %+v", got, again, n.Status())
	}
}

// A text that the endpoint does not take keeps no other from its vector.
func TestNearnessOneText(t *testing.T) {
	s := newStandIn(t)
	s.set(nil, "poison")
	n := s.nearness()
	r := newNearRig(t, n)
	for i := range 70 {
		r.tell(fmt.Sprintf("The cat has number %d.", i))
		if i%30 == 7 {
			r.tell(fmt.Sprintf("The poison is number %d.", i))
		}
	}
	for range 40 {
		r.recall("kitten")
	}
	if st := n.Status(); st.Texts != 70 || st.Waiting != 3 || st.Fault == "" {
		t.Fatalf("%+v", st)
	}
	s.set(nil, "")
	if r.recall("kitten"); n.Status().Texts != 73 {
		t.Fatalf("%+v", n.Status())
	}
}

// What is kept of a vector is near enough to it.
func TestVectors(t *testing.T) {
	for _, of := range [][]float32{{}, {0, 0}, {float32(math.NaN()), 1}, {1, float32(math.NaN())}, {float32(math.Inf(1)), 1}, {1, float32(math.Inf(-1))}} {
		if v := vectorOf(of); v != nil {
			t.Errorf("%v has a direction: %v", of, v)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + rnd.IntN(900)
		a, b := make([]float32, n), make([]float32, n)
		scale := math.Pow(10, float64(rnd.IntN(60)-30))
		var dot, aa, bb float64
		for i := range a {
			x := rnd.NormFloat64()
			y := x*rnd.Float64() + rnd.NormFloat64()*rnd.Float64()
			a[i], b[i] = float32(x*scale), float32(y/scale)
			dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
		}
		v, w := vectorOf(a), vectorOf(b)
		if got, want := float64(v.times(w))/v.norm/w.norm, dot/math.Sqrt(aa*bb); math.Abs(got-want) > 0.02 {
			t.Fatalf("%d numbers: %v, want %v", n, got, want)
		}
	}
}
