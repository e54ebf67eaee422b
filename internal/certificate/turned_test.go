package certificate

import (
	"strings"
	"testing"
	"time"
)

// TestTurned: a word of two parts is read as the gate reads it.
func TestTurned(t *testing.T) {
	for text, want := range map[string]bool{
		"scale catalog to| 5": true, "please scale the deployment catalog up to| 5": true, "Could you SCALE it to| 5?": true, "scale\tit  to| 5": true,
		"scale catalog, to| 5": false, "scale catalog\nto| 5": false, "upscale it to| 5": false, "scale it 2 times to| 5": false, "scale it。now to| 5": false, "don't scale it to| 5": false,
		"if it rains, scale it to| 5": false, "Kim will scale it to| 5": false, "scale a b c d e f g h i to| 5": false, "to| 5": false,
		"scale it to| 5 tomorrow": false, "scale it to| \"5\" on Friday": false, "scale it to| 5 as soon as Kim agrees": false, "scale it to| 5 in shop": true, "scale it to| 5. Tomorrow is late.": true,
	} {
		before, after, _ := strings.Cut(text, "|")
		s := New("s_a", [32]byte{1})
		s.Turn(1, before+after, time.Unix(1_800_000_000, 0))
		if got := s.turns[0].turned(before, before, "scale … to", true); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for text, want := range map[string]bool{
		"put 2 lines for 2.0 into main.go on| main": true, "put it in main. On| main": false, "put it in, on| main": false, "put it in—on| main": false, "don't put 2 on| main": false,
	} {
		before, after, _ := strings.Cut(text, "|")
		s := New("s_a", [32]byte{1})
		s.Turn(1, before+after, time.Unix(1_800_000_000, 0))
		if got := s.turns[0].turned(before, before, "put … on", false); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
