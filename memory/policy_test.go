package memory

import (
	"bytes"
	"encoding/hex"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the cases give into their files, for a person to read")

func ratOf(a, b int64) *big.Rat { return big.NewRat(a, b) }

func TestBuiltin(t *testing.T) {
	for _, profile := range []string{"v01q", "v1"} {
		p := builtinPolicy(t, profile)
		if b, err := hex.DecodeString(p.Hash()); err != nil || len(b) != 32 || p.Profile != profile {
			t.Errorf("%s: hash %q", profile, p.Hash())
		}
	}
	if _, ok := Builtin("../v1"); ok {
		t.Error("a profile that does not exist was found")
	}
}

// TestPolicyFaults runs the files of testdata/policy: a change to the built-in
// v1, as "old => new" lines, and behind "--" the faults it must give.
func TestPolicyFaults(t *testing.T) {
	v1 := builtinPolicy(t, "v1").Source()
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
		text := string(v1)
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
	for _, profile := range []string{"v01q", "v1"} {
		f.Add(builtinPolicy(f, profile).Source())
	}
	f.Add([]byte("version: 1\nflags: {}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, faults := ParsePolicy("p.yaml", b)
		if (p == nil) == (len(faults) == 0) {
			t.Fatalf("policy %v with %d faults", p != nil, len(faults))
		}
		if p != nil {
			p.Score(Evidence{Support: []Group{{Count: 2, Reliability: One}}, Age: 1e15, Volatility: High})
		}
	})
}
