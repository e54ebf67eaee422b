package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/witness/standin"
)

// TestWitness: the head is shown at the start and at the end; a state directory that was
// rolled back is noticed where this machine remembers nothing, and one whose witness is dead
// is not held up.
func TestWitness(t *testing.T) {
	state, dir := ownState(t), t.TempDir()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	call := func() {
		t.Helper()
		command(t, "call", "--state", state, "--session", "demo", "search_tickets", `{"query":""}`)
	}
	call()
	text, err := logKeyText(state, "")
	if err != nil {
		t.Fatal(err)
	}
	log, err := note.NewVerifier(text)
	if err != nil {
		t.Fatal(err)
	}
	s, vkey := standin.New(log)
	srv := httptest.NewServer(s)
	defer srv.Close()
	exe, err := exec.LookPath("writ")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("policy.yaml", string(example.Policy()))
	conf := func(url, more string) string {
		return write("writ.yaml", "servers: [{name: example, command: ["+exe+", example-server]}]\npolicy: policy.yaml\n"+
			"witnesses: [{url: "+url+", key: "+vkey+more+"}]\n")
	}
	good := conf(srv.URL+"/prefix", "")
	started := func(args ...string) (said string, code int) {
		t.Helper()
		cmd := exec.Command("writ", append([]string{"serve", "--state", state, "--listen", "127.0.0.1:0", "--config", good}, args...)...)
		b, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("it serves: %s", b)
		}
		return string(b), cmd.ProcessState.ExitCode()
	}
	status := func() (out shownStatus) {
		t.Helper()
		if err := json.Unmarshal([]byte(command(t, "status", "--state", state, "--json")), &out); err != nil || len(out.Gateways) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		return out
	}

	_, end := serving(t, "--state", state, "--config", good)
	if s.Last.Size != 3 || s.Odd != "" {
		t.Fatalf("it was shown %+v; odd %q", s.Last, s.Odd)
	}
	if w := status().Gateways[0].Witnesses; len(w) != 1 || w[0].Size != 3 || w[0].Fault != "" || w[0].Name != s.Name {
		t.Errorf("%+v", w)
	}
	old := map[string][]byte{}
	for _, name := range []string{"audit.db", "audit.journal"} { // as a copy is made, beside it
		if b, err := os.ReadFile(filepath.Join(state, name)); err == nil {
			old[name] = b
		}
	}
	end()
	key, err := audit.NewCosignatures(vkey)
	if err != nil {
		t.Fatal(err)
	}
	printed := command(t, "audit", "checkpoint", "--state", state, "--cosigned") + "\n"
	if n, err := note.Open([]byte(printed), note.VerifierList(key, log)); err != nil || len(n.Sigs) != 2 {
		t.Errorf("%q: %v", printed, err)
	}
	command(t, "audit", "verify", "--state", state, "--against", write("cosigned", printed))
	call()
	_, end = serving(t, "--state", state, "--config", good)
	if s.Last.Size <= 3 {
		t.Fatalf("it was shown %+v", s.Last)
	}
	end()

	// Rolled back, and no memory of it on this machine (L02, F12).
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for _, name := range []string{"audit.db", "audit.db-wal", "audit.db-shm", "audit.journal"} {
		os.Remove(filepath.Join(state, name))
		if b, ok := old[name]; ok {
			if err := os.WriteFile(filepath.Join(state, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if said, code := started(); code != 65 || !strings.Contains(said, "the witness "+s.Name+" signed a head that it does not go on from") || !strings.Contains(said, "--accept-rollback") {
		t.Errorf("%d: %s", code, said)
	}
	was := s.Last
	_, end = serving(t, "--state", state, "--config", good, "--accept-rollback")
	if w := status().Gateways[0].Witnesses; len(w) != 1 || !strings.Contains(w[0].Fault, "does not go on from") || s.Last != was {
		t.Errorf("%+v, it signed %+v", w, s.Last)
	}
	if said := end(); !strings.Contains(said, "a witness did not sign") {
		t.Error(said)
	}
	db, _ := os.ReadFile(filepath.Join(state, "audit.db"))
	journal, _ := os.ReadFile(filepath.Join(state, "audit.journal"))
	if !bytes.Contains(append(db, journal...), []byte(`"accepted":"rollback"`)) {
		t.Error("that an operator went on is not on record")
	}

	// A dead one holds nothing up, and is said; unless it is required.
	dead := "http://127.0.0.1:1/prefix"
	_, end = serving(t, "--state", state, "--config", conf(dead, ""))
	if w := status().Gateways[0].Witnesses; len(w) != 1 || w[0].Fault != "it does not answer" {
		t.Errorf("%+v", w)
	}
	call()
	end()
	conf(dead, ", required: true")
	if said, code := started(); code != 74 || !strings.Contains(said, "cannot be asked whether the log is the newest: it does not answer") {
		t.Errorf("%d: %s", code, said)
	}
	conf("http://witness.example/prefix", "")
	if said, code := started(); code != 78 || !strings.Contains(said, "not an absolute https URL") {
		t.Errorf("%d: %s", code, said)
	}
}
