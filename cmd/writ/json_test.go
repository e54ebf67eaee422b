package main

import (
	"strings"
	"testing"
)

// TestCallJSON: what a server wrote reaches a terminal as JSON that shows
// everything and obeys nothing, and is the same JSON.
func TestCallJSON(t *testing.T) {
	var b strings.Builder
	result := "{\"content\":[{\"type\":\"text\",\"text\":\"a\u202eb\u200b\U000e0041 <ä>\"}]}"
	if err := printResult(&b, []byte(result), nil, true); err != nil {
		t.Fatal(err)
	}
	if want := `{"content":[{"type":"text","text":"a\u202eb\u200b\udb40\udc41 <ä>"}]}` + "\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
