package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestManual: the page has each command and flag that help shows, and no line of it is
// a request that the text did not mean.
func TestManual(t *testing.T) {
	var b strings.Builder
	root := &cobra.Command{Use: "writ", Short: "s", Long: "l"}
	root.AddCommand(commands()...)
	hard := &cobra.Command{Use: "hard", Long: ".so /etc/passwd\n\n'x a\\b", Run: func(*cobra.Command, []string) {}}
	root.AddCommand(hard)
	writeManual(&b, root)
	page := b.String()
	for _, want := range []string{"\\&.so /etc/passwd\n.PP\n\\&'x a\\eb\n", ".SS writ tools approve SERVER[/TOOL]", `\fB\-\-session\fR \fINAME\fR`, ".SS writ memory search"} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if strings.Contains(page, "example\\-server") {
		t.Error("it tells of a hidden command")
	}
	for line := range strings.Lines(page) {
		request, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch request {
		case ".TH", ".SH", ".SS", ".B", ".I", ".TP", ".PP", ".nf", ".fi":
		default:
			if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
				t.Errorf("a stray request: %q", line)
			}
		}
	}
}
