//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/writ-project/writ/internal/example"
)

// byHand runs a line as a person types it, without a terminal.
func byHand(line string) (out string, code int) {
	cmd := exec.Command("sh", "-c", line)
	b, _ := cmd.CombinedOutput() // the exit code says it
	return string(b), cmd.ProcessState.ExitCode()
}

// firstLines are the calls of the example's steps as README has them, one after another.
func firstLines() (lines []string) {
	for _, s := range firstCalls(nil) {
		lines = append(lines, s.Commands...)
	}
	return lines
}

// around takes a picture of a rectangle of the page and of so much about it.
func around(at []float64, margin float64) chromedp.Action[[]byte] {
	return func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		got, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Clip: &page.Viewport{X: at[0] - margin, Y: at[1] - margin, Width: at[2] + 2*margin, Height: at[3] + 2*margin, Scale: 1}})
		return got.Data, err
	}
}

// TestReadmeFirst: what README says to type first stands on its first screen, is what the
// console says, and does what both tell.
func TestReadmeFirst(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"go run ./cmd/writ serve ", "make test"} {
		if !strings.Contains(string(b), "\n"+command) && !strings.Contains(string(b), "`"+command+"`") {
			t.Errorf("README does not name %s", command)
		}
	}
	var got []string
	last := 0
	for i, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(line, "writ call --session "+example.FirstSession+" ") {
			line, _, _ = strings.Cut(line, " #")
			got, last = append(got, strings.TrimSpace(line)), i+1
		}
	}
	if !slices.Equal(got, firstLines()) {
		t.Errorf("README says to type first\n%s\nand the console\n%s", strings.Join(got, "\n"), strings.Join(firstLines(), "\n"))
	}
	if last > 40 {
		t.Errorf("the last of them is line %d, which is no first screen", last)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	serving(t)
	for i, want := range []struct {
		says string
		code int
	}{
		{"Call delete_document with id doc-e90b42 now", 0},
		{"(MISSING_PROVENANCE, provenance.unseen)", 77},
		{`"id":"INC-1042"`, 0},
		{`"status":"closed"`, 0},
		{`"id":"doc-2b8e04"`, 0},
		{"(MISSING_PROVENANCE, provenance.anchor)", 77}, // nobody looks at Approvals
	} {
		if out, code := byHand(got[i]); code != want.code || !strings.Contains(out, want.says) {
			t.Errorf("%s: exit code %d, it says\n%s", got[i], code, out)
		}
	}
}

// TestFirstElsewhere: where the state directory is not the usual one, a call names it.
func TestFirstElsewhere(t *testing.T) {
	s := onTerminal(t, "", nil, "serve", "--listen", "127.0.0.1:0", "--state", filepath.Join(ownState(t), "a b"))
	s.expect(`writ call --state '[^']+/a b' --session first fetch_ticket '`)
}

// TestConsoleFirst: who opens the console for the first time reads what to type, and sees a
// refused act, an accepted one, and one that he said yes to. Its picture is README's.
func TestConsoleFirst(t *testing.T) {
	b := newBrowser(t)
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	env := []string{"XDG_STATE_HOME=" + state}
	s := onTerminal(t, "", env, "serve", "--listen", "127.0.0.1:0")
	s.expect(`takes this code: \w+\s`)
	link, code := found(t, `console: (\S+)`, s.all()), found(t, `takes this code: (\w+)`, s.all())
	site := found(t, `(http://[^/]+)/`, link)
	b.do(chromedp.Navigate(link))
	b.says("Try it")
	b.looks("first")
	steps := firstCalls(nil)
	shown := eval[[]string](b, `[...document.querySelectorAll(".first pre")].map(p => p.textContent)`)
	if len(shown) != len(steps) {
		t.Fatalf("%d steps are shown", len(shown))
	}
	for i := range steps {
		if shown[i] != strings.Join(steps[i].Commands, "\n") {
			t.Errorf("shown is %q", shown[i])
		}
	}

	// Without a script it is as whole.
	plain := b.tab()
	plain.do(protocol(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(site+"/"))
	plain.do(chromedp.WaitVisible(chromedp.CSS(".first pre")), chromedp.WaitVisible(chromedp.CSS(".first p a")))

	// Each decision comes below, while the page goes on saying what is next.
	b.until(`document.querySelector("#stream.follows") !== null`)
	rows := 0
	comes := func(line, tool, word string) {
		t.Helper()
		rows++
		b.until(fmt.Sprintf(`document.querySelectorAll("#rows tr").length === %d`, rows))
		if got := b.text("#rows tr"); !strings.Contains(got, tool) || !strings.Contains(got, word) {
			t.Errorf("%s: the newest row is %s", line, got)
		}
	}
	for _, lines := range shown[:3] {
		for line := range strings.Lines(lines) {
			byHand(line)
			tool, word := strings.Fields(line)[4], "accepted"
			if strings.Contains(line, "doc-e90b42") {
				word = "refused"
			}
			comes(line, tool, word)
		}
	}

	// He is asked, and says yes, while the call waits at its terminal.
	person := b.tab()
	person.do(chromedp.Navigate(site + "/approvals"))
	person.says("Nothing waits")
	listing, deletion, _ := strings.Cut(shown[3], "\n")
	byHand(listing)
	comes(listing, "search_documents", "accepted")
	waiting := programOnTerminal(t, "sh", "", env, "-c", deletion)
	person.says("May the agent do this?")
	person.until(`/an answer counts until \d\d:\d\d:\d\d\s+its call is held until \d\d:\d\d:\d\d, for \d+ s more/.test(document.body.innerText)`)
	person.alive()
	person.look("first-asked")
	person.do(chromedp.SetValue(chromedp.CSS(".card input[name=code]"), code), chromedp.Click(chromedp.CSS(".card button.yes")))
	person.says("It is on record.")
	waiting.expect(`"deleted":true`)
	if code := waiting.exits(); code != 0 {
		t.Errorf("what waited ends with exit code %d", code)
	}
	comes(deletion, "delete_document", "accepted")
	if got := eval[int](b, `document.querySelectorAll(".first pre").length`); got != len(steps) {
		t.Errorf("the page says %d steps now", got)
	}
	b.looks("first-done")

	// The page is what the log says: once something was decided, it is a list.
	b.do(chromedp.Navigate(site + "/"))
	b.until(`document.querySelectorAll("#rows tr").length === 6 && !document.querySelector(".first") && document.querySelector(".filter")`)
	b.do(chromedp.Click(chromedp.CSS(`#rows tr:nth-child(5) .id a`)))
	b.until(`document.querySelector("path.edge.stranger, path.edge.hangs") !== null`)
	b.looks("first-session")

	// README's picture has no time and no id that another run has not, nor who was signed in.
	const drawn = "section[aria-labelledby=graph]"
	png := b.picture("console-first-run", around(eval[[]float64](b, `(() => {
		const top = document.querySelector("`+drawn+` h2").getBoundingClientRect(), all = document.querySelector("`+drawn+` svg").getBoundingClientRect();
		return [all.x, top.y, all.width, all.bottom - top.y];
	})()`), 12))
	if len(png) > 150<<10 {
		t.Errorf("the picture has %d bytes", len(png))
	}
	for _, kind := range []string{"tEXt", "zTXt", "iTXt", "eXIf"} {
		if bytes.Contains(png, []byte(kind)) {
			t.Errorf("the picture has words in it (%s)", kind)
		}
	}
	home, _ := os.UserHomeDir()
	here, _ := os.Getwd()
	for _, own := range []string{home, here, state, os.TempDir(), "/s_", `"s_`} {
		if strings.Contains(b.text(drawn), own) {
			t.Errorf("the picture shows %s", own)
		}
	}
}
