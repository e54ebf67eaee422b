package memory

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the cases give into their files, for a person to read")

// changedPolicy is the built-in policy with one text in place of another.
func changedPolicy(t testing.TB, from, to string) *Policy {
	t.Helper()
	text := string(Builtin().Source())
	if !strings.Contains(text, from) {
		t.Fatalf("%q is not in the policy", from)
	}
	p, faults := ParsePolicy("p.yaml", []byte(strings.Replace(text, from, to, 1)))
	if p == nil {
		t.Fatal(faults)
	}
	return p
}

// otherPolicy is a policy that is not the built-in one.
func otherPolicy(t testing.TB) *Policy { return changedPolicy(t, "test_hours: 168", "test_hours: 24") }

func TestBuiltin(t *testing.T) {
	p := Builtin()
	if b, err := hex.DecodeString(p.Hash()); err != nil || len(b) != 32 || !bytes.Equal(p.Source(), builtin) {
		t.Errorf("hash %q of %d bytes", p.Hash(), len(p.Source()))
	}
	// What a caller does with the source changes no policy.
	p.Source()[0] = 'X'
	if p.Source()[0] == 'X' {
		t.Error("the source is handed out")
	}
}

// TestPolicyFaults runs the files of testdata/policy: a change to the built-in
// policy, as "old => new" lines, and behind "--" the faults it must give.
func TestPolicyFaults(t *testing.T) {
	files, _ := filepath.Glob("testdata/policy/*.txt")
	if len(files) < 5 {
		t.Fatal("the cases were not found")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		edit, want, _ := strings.Cut(string(b), "--\n")
		text := string(Builtin().Source())
		for _, l := range strings.Split(strings.Trim(edit, "\n"), "\n") {
			if strings.HasPrefix(l, "#") {
				continue
			}
			from, to, ok := strings.Cut(l, " => ")
			if !ok || !strings.Contains(text, from) {
				t.Fatalf("%s: %q is not in the policy", file, from)
			}
			text = strings.Replace(text, from, strings.TrimSpace(to), 1)
		}
		p, faults := ParsePolicy("p.yaml", []byte(text))
		if p != nil || len(faults) == 0 {
			t.Errorf("%s: no fault", file)
		}
		var got bytes.Buffer
		for _, f := range faults {
			got.WriteString(f.String() + "\n")
		}
		if *update {
			if err := os.WriteFile(file, []byte(edit+"--\n"+got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got.String(), want)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(Builtin().Source())
	f.Add([]byte("version: 2\nlevels: {}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, faults := ParsePolicy("p.yaml", b)
		if (p == nil) == (len(faults) == 0) {
			t.Fatalf("policy %v with %d faults", p != nil, len(faults))
		}
		if p == nil {
			return
		}
		// No policy lifts what a stranger says, or what the agent concludes.
		for _, c := range []TrustClass{ClassToolExternal, ClassDocument, ClassWeb, ClassPeerAgent, ClassImport, ClassAgentInference, "x"} {
			if l := p.level(c, Local); l > 1 || c == ClassAgentInference && l > 0 || c == "x" && l > 0 {
				t.Fatalf("%s is of level %d", c, l)
			}
		}
	})
}
