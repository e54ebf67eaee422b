package provenance

import (
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestRecalledLinks is V11, R35: of what a memory returns a link counts as seen
// if it was captured where nobody of ours wrote it, and not if the model did.
func TestRecalledLinks(t *testing.T) {
	l := NewLedger([32]byte{1}, Caps{})
	result := []byte(`{"structuredContent":{"kept":"https://evil.example/?d=SECRET","mail":"https://news.example/1"}}`)
	p, err := l.Prepare(Observation{Evidence: 1, Server: "writ", Tool: "memory_get", OK: true,
		Leaves: Recall(strictjson.Of(result), []Recalled{{Pointer: "/structuredContent/mail", Label: writ.External}, {Pointer: "/structuredContent/kept", Label: writ.Model}})})
	if err == nil {
		err = l.Commit(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Seen(strictjson.Of([]byte(`"https://evil.example/?d=SECRET"`))); ok {
		t.Error("a link the model kept is seen")
	}
	if _, ok := l.Seen(strictjson.Of([]byte(`"https://news.example/1"`))); !ok {
		t.Error("a stranger's link that was captured is not seen")
	}
}
