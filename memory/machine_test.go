package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// digests holds what logs come to: a line for each case file and one for a memory
// that has grown, with the SHA-256 of the log, and of the state and all that was
// answered and read. `make arm64` compares it on another processor, whose float64
// functions round otherwise.
const digests = "testdata/golden/digests.txt"

// TestSameOnEveryMachine holds every log, state and reading to the digests that
// are committed. Where the memory decides otherwise than it did, on purpose,
// -update writes them anew; a difference on one kind of machine alone is a
// defect of the memory.
func TestSameOnEveryMachine(t *testing.T) {
	var out strings.Builder
	out.WriteString("# What logs come to, to the byte: TestSameOnEveryMachine. Made with -update.\n# name | events | log | state and readings\n")
	files, _ := filepath.Glob("testdata/cases/*.txt")
	if len(files) < 10 {
		t.Fatalf("only %d files of cases were found", len(files))
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		x, told, log := newScript(t), sha256.New(), sha256.New()
		for l := range strings.Lines(string(b)) {
			if l = strings.TrimSpace(l); l != "" && l[0] != '#' && !strings.HasPrefix(l, "->") {
				fmt.Fprintln(told, x.line(l))
			}
		}
		for _, r := range x.log {
			fmt.Fprintf(log, "%d %s%d %s", len(r.event), r.event, len(r.value), r.value)
		}
		if err := x.s.Encode(told); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "cases/%s | %d | %s | %s\n", filepath.Base(file), len(x.log), hex.EncodeToString(log.Sum(nil)), hex.EncodeToString(told.Sum(nil)))
	}
	s, c := grown(t, 1000)
	told := sha256.New()
	r := Reader{State: s, Principal: c.Principal, Now: c.Now}
	for i := range 50 {
		said, about := benchSaid(i*19, 1000)
		fmt.Fprintln(told, mustJSON(t, []any{r.Recall(Ask{Query: said, All: i%2 == 0}), r.Recall(Ask{Query: "meeting", About: about})}))
	}
	fmt.Fprintf(&out, "grown | %d | %s | %s\n", s.Head(), s.Digest(), hex.EncodeToString(told.Sum(nil)))
	if *update {
		if err := os.WriteFile(digests, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(digests)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for l := range strings.Lines(string(b)) {
		name, _, _ := strings.Cut(l, " | ")
		want[name] = l
	}
	for l := range strings.Lines(out.String()) {
		name, _, _ := strings.Cut(l, " | ")
		if want[name] != l {
			t.Errorf("on %s:\n got %swant %s", runtime.GOARCH, l, cmp.Or(want[name], "no such line\n"))
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("nothing is called %q any more", name)
	}
	if t.Failed() {
		t.Logf("%s says otherwise; if this is meant: go test ./memory -run '^TestSameOnEveryMachine$' -update", digests)
	}
}
