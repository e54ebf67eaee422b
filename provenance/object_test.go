package provenance_test

import (
	"os"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// TestOrderOf reads testdata/objects.txt: each line is + or - and a sentence in which the value
// stands between < and >.
func TestOrderOf(t *testing.T) {
	data, err := os.ReadFile("testdata/objects.txt")
	if err != nil {
		t.Fatal(err)
	}
	orders := []string{"delete", "remove", "forget", "drop", "clean up", "get rid of", "forget that"}
	nouns := []string{"entity", "entities", "node", "keys", "self.person"}
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.ReplaceAll(strings.TrimSpace(line), `\n`, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		n++
		want := line[0] == '+'
		line, answer := strings.CutPrefix(line[2:], "= ")
		line, event := strings.CutPrefix(line, "event: ")
		start, end := strings.IndexByte(line, '<'), strings.IndexByte(line, '>')-1
		s := strings.NewReplacer("<", "", ">", "").Replace(line)
		is := provenance.OrderOf
		if answer {
			is = func(s string, _, nouns []string, start, end int) bool {
				return provenance.AnswerOf(s, nouns, start, end)
			}
		}
		of := orders
		if !strings.Contains(s, "forget that") { // and nothing of the kind is told
			of = orders[:len(orders)-1]
		}
		things := nouns
		if event {
			things = append([]string{"event", "meeting"}, nouns...)
		}
		if got := is(s, of, things, start, end); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
	if n < 90 {
		t.Errorf("only %d sentences", n)
	}
}

// TestOrderedInAssent: a turn that only agrees orders nothing, whatever its words are.
func TestOrderedInAssent(t *testing.T) {
	l := provenance.NewLedger([32]byte{}, provenance.Caps{})
	for i, text := range []string{"Delete Kim", "Yes, that is right, that is right, please proceed"} {
		p, err := l.PrepareTurn(provenance.Turn{Evidence: uint32(i + 1), Text: text})
		if err == nil {
			err = l.CommitTurn(p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, why := l.Typed(provenance.Query{Value: strictjson.StringOf("proceed"), Orders: []string{"delete"}}); why != writ.ProvenanceUnseen {
		t.Errorf("it counts: %q", why)
	}
	if _, why := l.Typed(provenance.Query{Value: strictjson.StringOf("proceed")}); why != "" {
		t.Errorf("it is not said: %q", why)
	}
	if _, why := l.Typed(provenance.Query{Value: strictjson.StringOf("Kim"), Orders: []string{"delete"}}); why != "" {
		t.Errorf("what he agrees to is taken back: %q", why)
	}
}
