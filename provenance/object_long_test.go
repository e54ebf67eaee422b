package provenance_test

import (
	"strings"
	"testing"

	"github.com/writ-project/writ/provenance"
)

// TestOrderInLongSentence: a phrase behind thousands of bytes of its own sentence is no order, and
// none has to be read for it.
func TestOrderInLongSentence(t *testing.T) {
	for n, want := range map[int]bool{10: true, 5000: false} {
		s := strings.Repeat("look and ", n/9) + "delete Anna"
		if got := provenance.OrderOf(s, []string{"delete"}, nil, len(s)-4, len(s)); got != want {
			t.Errorf("behind %d bytes: %v", n, got)
		}
	}
}
