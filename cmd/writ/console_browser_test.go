//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/writ-project/writ/internal/example"
)

// A browser is a headless one of a person's, with one tab.
type browser struct {
	t    *testing.T
	ctx  context.Context
	axe  string // the checker of accessibility, "" where it is not installed
	shot string // where pictures go
}

type step = chromedp.Action[chromedp.Void]

// protocol is a command of the browser's protocol.
func protocol[P any](c cdp.Command[P, cdp.Empty], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// newBrowser starts Chromium with more flags than its own, or skips.
func newBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("drives a browser")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: apt-get install chromium")
	}
	o := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	for _, flag := range []string{"no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "no-first-run"} {
		o = append(o, chromedp.Flag(flag, true))
	}
	o = append(o, more...)
	o = append(o, chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	all, cancel := chromedp.NewExecAllocator(t.Context(), o...)
	ctx, end := chromedp.NewContext(all)
	b := &browser{t: t, ctx: ctx, shot: t.ArtifactDir()}
	if dir := os.Getenv("WRIT_SCREENSHOTS"); dir != "" {
		b.shot = dir
	}
	t.Cleanup(func() {
		end()
		cancel()
	})
	if peers := os.Getenv("WRIT_PEERS"); peers == "" {
		t.Log("accessibility is not checked: set WRIT_PEERS to the installed peers (make peers)")
	} else if text, err := os.ReadFile(filepath.Join(peers, "node_modules/axe-core/axe.min.js")); err != nil {
		t.Fatal("axe-core is not among the peers (make peers)")
	} else {
		b.axe = string(text)
	}
	b.begin()
	return b
}

// begin opens the tab, which is there as long as the context that it is begun with.
func (b *browser) begin() {
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		b.t.Fatal(err)
	}
}

// tab is another tab of the same browser.
func (b *browser) tab() *browser {
	ctx, end := chromedp.NewContext(b.ctx)
	b.t.Cleanup(end)
	other := *b
	other.ctx = ctx
	other.begin()
	return &other
}

// do runs actions, each of which waits for what it needs.
func (b *browser) do(actions ...step) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.fail(err)
	}
}

func (b *browser) fail(err error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	b.t.Fatalf("%v\nat %s", err, text)
}

// until waits for what is true of the page, or of that which comes after it.
func (b *browser) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingInterval(20*time.Millisecond)))
		if ok && err == nil {
			return
		}
		if ctx.Err() != nil {
			b.fail(fmt.Errorf("it does not come to %s: %w", expression, err))
		}
	}
}

// eval is the value of an expression in the page.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.fail(err)
	}
	return v
}

// says waits until the page shows a text.
func (b *browser) says(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body && document.body.innerText.includes(%q)", text))
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// picture keeps one that an action takes, and returns it.
func (b *browser) picture(name string, take chromedp.Action[[]byte]) []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	b.until(`document.readyState === "complete"`)
	png, err := chromedp.Run(ctx, take)
	for err != nil && ctx.Err() == nil { // it was not laid out yet
		png, err = chromedp.Run(ctx, take)
	}
	if err != nil {
		b.fail(err)
	}
	if err := os.WriteFile(filepath.Join(b.shot, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return png
}

// look takes a picture of the whole page, and has it checked for who cannot see it.
func (b *browser) look(name string) {
	b.t.Helper()
	b.picture(name, chromedp.FullScreenshot(100))
	if b.axe == "" {
		return
	}
	if !eval[bool](b, "window.axe !== undefined") { // a page that is looked at again has it
		eval[chromedp.Void](b, b.axe)
	}
	faults := eval[string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations
		.map(v => [v.id, v.help, ...v.nodes.map(n => n.target.join(" ") + ": " + n.failureSummary)])))`)
	if faults != "[]" {
		b.t.Errorf("%s: axe finds %s", name, faults)
	}
	// Nothing is wider than the screen but what scrolls in a place of its own.
	if eval[bool](b, "document.documentElement.scrollWidth > window.innerWidth") {
		b.t.Errorf("%s is wider than the screen", name)
	}
}

// looks takes it in light, in dark, and as wide as a phone.
func (b *browser) looks(name string) {
	b.t.Helper()
	b.look(name)
	dark := func(scheme string) step {
		return protocol(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	}
	b.do(dark("dark"))
	b.look(name + "-dark")
	b.do(dark("light"), chromedp.EmulateViewport(390, 844))
	b.look(name + "-phone")
	b.do(chromedp.EmulateViewport(1280, 900))
}

// found is the first group of a pattern in a text.
func found(t *testing.T, pattern, in string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(in)
	if m == nil {
		t.Fatalf("%s is not in %q", pattern, in)
	}
	return m[1]
}

// alive waits until the buttons of the cards can be pressed.
func (b *browser) alive() {
	b.t.Helper()
	b.until(`document.querySelector(".scripted .card button.yes") && !document.querySelector(".card button[aria-disabled]") &&
		[...document.querySelectorAll(".card form")].every(f => getComputedStyle(f).pointerEvents !== "none")`)
}

// consoled starts writ serve on a terminal, and returns the link and the code it shows.
func consoled(t *testing.T, listen string, args ...string) (s *terminalScreen, link, code string) {
	t.Helper()
	s = onTerminal(t, "", nil, append([]string{"serve", "--listen", listen}, args...)...)
	s.expect(`takes this code: \w+\s`)
	return s, found(t, `console: (\S+)`, s.all()), found(t, `takes this code: (\w+)`, s.all())
}

// TestConsoleBrowser: what a person sees and does in the console, beside a gateway that an
// agent uses.
func TestConsoleBrowser(t *testing.T) {
	b := newBrowser(t)
	// One tool has no contract, and the definition of another was a different one.
	text := regexp.MustCompile(`(?m)^  example/search_policies:\n(?:    .*\n)*`).ReplaceAllLiteral(example.Policy(), nil)
	text = bytes.Replace(text, []byte("pin: sha256:d9"), []byte("pin: sha256:0f"), 1)
	// And one act takes what nothing vouches for by the policy.
	text = regexp.MustCompile(`(?m)(^  example/fetch_document:\n.*\n    effect: )read`).ReplaceAll(text, []byte("${1}write\n    args: { /id: { role: target, from: [user] } }"))
	policy, state := approving(t, text), ownState(t)
	more := []string{"--state", state, "--config", policy}
	written, err := os.ReadFile(policy)
	if err == nil {
		err = os.WriteFile(policy, append(written, "memory: {surface: everyday}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, link, code := consoled(t, "127.0.0.1:0", more...)
	site := found(t, `(http://[^/]+)/`, link)
	port := found(t, `:(\d+)$`, site)
	call := func(tool, arguments string) (out string) {
		out, _ = piped77(t, "", "call", "--state", state, "--session", "demo", tool, arguments)
		return out
	}
	call("search_tickets", `{"query":""}`)
	call("search_documents", `{"query":"`+"\u202eattack\u200b"+`<img src=x onerror=alert(1)>"}`)
	call("fetch_ticket", `{"id":"INC-1043"}`)
	call("delete_document", `{"id":"doc-7f3a19"}`)
	call("close_ticket", `{"id":"INC-1042","resolution":"fixed"}`)

	// The link works once.
	b.do(chromedp.Navigate(link))
	b.says("Live")
	b.says("example/close_ticket")
	b.until(`document.querySelectorAll("#rows tr").length >= 5`)
	other := b.tab()
	other.do(chromedp.Navigate(link))
	other.says("That link was used already")
	other.look("signed-out")

	// What is decided comes by itself.
	b.until(`document.querySelector("#stream.follows") !== null`)
	call("close_ticket", `{"id":"INC-9999","resolution":"fixed"}`)
	b.until(`document.querySelector("#rows tr.new") !== null`)
	if got := b.text("#rows tr.new"); !strings.Contains(got, "asked") || !strings.Contains(got, "search_tickets") {
		t.Errorf("the new row: %s", got)
	}
	if !eval[bool](b, `[...document.querySelectorAll(".pages a")].every(a => a.textContent !== "Newer" || a.getClientRects().length === 0)`) {
		t.Error("the newest page, which goes on by itself, offers a newer one")
	}
	b.looks("live")
	b.do(chromedp.SetValue(chromedp.CSS("#status"), "refused"), chromedp.Submit(chromedp.CSS("#status")))
	b.until(`location.search.includes("status=refused") && [...document.querySelectorAll("#rows .word")].every(w => w.textContent === "refused")`)

	// One decision, to the bytes that its argument came from.
	b.do(chromedp.Navigate(site+"/?tool=close_ticket&status=accepted"), chromedp.Click(chromedp.CSS("#rows .call a")))
	b.says("What happened")
	b.says("Download the proof")
	b.looks("decision")
	b.do(chromedp.Click(chromedp.CSS(`td a[href^="/e/"]`)))
	b.until(`document.querySelector("mark") !== null`)
	if got := b.text("mark"); got != `"INC-1042"` {
		t.Errorf("marked is %s", got)
	}
	b.looks("evidence")

	// What is hidden in a text is drawn, and markup in it is text (K01).
	b.do(chromedp.Navigate(site+"/?tool=search_documents"), chromedp.Click(chromedp.CSS("#rows .call a")))
	b.says("U+202E")
	b.says("<img src=x onerror=alert(1)>")
	if eval[int](b, `document.querySelectorAll("img").length`) != 0 {
		t.Error("markup came in")
	}

	// The session: a line to what vouches, and a red one to a stranger's text.
	call("delete_document", `{"id":"doc-e90b42"}`)
	b.do(chromedp.Click(chromedp.CSS(".above a")))
	b.until(`document.querySelector("path.edge.ok") !== null && document.querySelector("path.edge.stranger") !== null && document.querySelector("path.edge.hangs") !== null`)
	b.looks("session")

	// A card, answered in one of two tabs.
	b.do(chromedp.Navigate(site + "/approvals"))
	b.says("May the agent do this?")
	b.says("it stands inside ev3 example/fetch_ticket /structuredContent/text")
	b.looks("approvals")
	other.do(chromedp.Navigate(site + "/approvals"))
	other.says("May the agent do this?")
	card := "#" + eval[string](b, `document.querySelector(".card").id`)
	b.alive()
	b.do(chromedp.SetValue(chromedp.CSS(card+" input[name=code]"), "wrong"), chromedp.Click(chromedp.CSS(card+" button.yes")))
	b.says("That is not the code")
	b.alive()
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("y"))
	b.until(`document.activeElement.name === "code"`)
	b.do(chromedp.SetValue(chromedp.CSS(card+" input[name=code]"), code), chromedp.Click(chromedp.CSS(card+" button.yes")))
	b.says("It is on record.")
	b.look("answered")
	// From now on, without the code: it was given.
	b.alive()
	b.do(chromedp.Click(chromedp.CSS(".card summary")), chromedp.Click(chromedp.CSS(".card input[name=keep]")), chromedp.Click(chromedp.CSS(`.card button[value=keep]`)))
	b.says("from now on. It is on record")
	if out, _ := piped77(t, "", "grown", "list", "--config", policy); !strings.Contains(out, "INC-9999") {
		t.Errorf("what was kept: %s", out)
	}
	other.until(fmt.Sprintf(`document.querySelector(%q+".gone button.yes:disabled")`, card)) // it was told, and stays
	other.says("What waits has changed")
	other.says("Accepted: " + account() + " said yes. What was decided") // by whom, and without a click
	b.do(chromedp.NavigateBack())
	b.until(`document.readyState === "complete"`)
	b.until(fmt.Sprintf(`!document.querySelector(%q)`, card)) // what was answered does not come back

	// The servers, and one tool to the lines of its contract.
	b.do(chromedp.Navigate(site + "/tools"))
	b.says("over stdio, started as writ with 1 argument")
	b.says("no contract in the policy")
	b.says("changed since you approved it")
	b.looks("tools")
	b.do(chromedp.Navigate(site + "/tools?tool=example/search_policies"))
	b.says("effect: read")
	b.looks("tool-closed")
	b.do(chromedp.Navigate(site + "/tools?tool=example/fetch_policy"))
	b.says("writ tools approve example/fetch_policy")
	b.looks("tool-changed")
	b.do(chromedp.Navigate(site + "/tools"))
	b.do(chromedp.Click(chromedp.CSS(`a[href="/tools?tool=example%2fdelete_document"]`)))
	b.says("what a tool returned as document")
	b.do(chromedp.Click(chromedp.CSS(`a[href$="learned#learned"]`)))
	b.says("in the last 7 days: what it was called with passes")
	b.looks("tool")
	// From a field that was observed it is one click to the line of policy.
	other.do(chromedp.Navigate(site + "/tools")) // a call is held while somebody looks at what waits
	call("search_documents", `{"query":""}`)
	call("fetch_document", `{"id":"doc-2b8e04"}`)
	other.do(chromedp.Navigate(site + "/tools?tool=example/fetch_document&learned"))
	other.says("came from there 1 of 1")
	other.do(chromedp.Click(chromedp.CSS(`details.take summary`)))
	other.says(`{"tool":"example/fetch_document","arg":"/id","from":"example/search_documents#/documents/*/id"}`)
	other.says("writ learn --config " + policy)
	other.looks("tool-learned")
	b.do(chromedp.Click(chromedp.CSS(`th a[href^="/policy"]`)))
	b.until(`document.querySelector("li:target code").innerText.includes("/id: { role: selector, collection: document")`)
	b.says("changed since you approved it") // of another line
	b.says("INC-9999")
	b.looks("policy")

	// A changed policy, replayed; one with a fault says where.
	b.do(chromedp.Click(chromedp.CSS(`a[href="/policy/replay"]`)))
	b.until(`location.pathname === "/policy/replay" && document.readyState === "complete"`)
	b.do(chromedp.SetValue(chromedp.CSS("#policy"), "tools:\n  example/close_ticket: { efect: write }\n"), chromedp.Submit(chromedp.CSS("#policy")))
	b.says("line 2, column 27:")
	b.looks("replay-fault")
	b.do(chromedp.SetValue(chromedp.CSS("#policy"), strings.Replace(string(text), "/id: { role: selector, collection: ticket, from: [output] }", "/id: { role: selector, from: [user] }", 1)), chromedp.Submit(chromedp.CSS("#policy")))
	b.says("would come out otherwise")
	b.says("Nothing was written, and nothing is in force by it.")
	b.until(`[...document.querySelectorAll("th.call .act")].some(a => a.innerText.includes("INC-1042"))`)
	b.looks("replay")

	// What the log comes to, and what would end most questions.
	b.do(chromedp.Navigate(site + "/charts"))
	b.until(`document.querySelectorAll(".columns rect.asked").length > 0`)
	b.do(chromedp.Click(chromedp.CSS(`a[href="/charts?ends#friction"]`)))
	b.says("would wait for a person")
	b.looks("charts")

	// Every session, and by its name the one.
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="/sessions"]`)))
	b.says("demo")
	b.looks("sessions")
	b.do(chromedp.Click(chromedp.CSS(`td.call a`)))
	b.says("Timeline")

	// What is remembered: by whom it was said, what was believed before, and what was erased.
	for i, said := range []string{"My sister Anna's phone is 555-0100.", "By the way, Anna's phone is 555-0199 now.", "I am allergic to peanuts."} {
		piped77(t, "", "session", "say", "--state", state, "demo", said)
		call("remember", []string{`{"about":"Anna: phone","text":"Anna's phone is 555-0100"}`, `{"about":"Anna: phone","text":"Anna's phone is 555-0199"}`, `{"about":"me: allergic","text":"The user is allergic to peanuts"}`}[i])
	}
	call("remember", `{"text":"`+"\u202ethe user\u200b"+`<img src=x onerror=alert(1)> is in a hurry"}`)
	piped77(t, "", "memory", "erase", "--state", state, "--proposition", "prop_4", "--reason", "request", "--yes")
	b.do(chromedp.Navigate(site + "/memory"))
	b.says("Anna: phone = 555-0199")
	b.says("The model puts it:")
	b.says("U+202E")
	b.looks("memory")
	b.do(chromedp.Click(chromedp.CSS(`.memory a[href$="/prop_2"]`)))
	b.says("replaced: it is no answer: another value took its place")
	b.says("--proposition prop_2 --preview")
	b.looks("belief")
	b.do(chromedp.Click(chromedp.CSS(`#timeline + div a`)))
	b.says("established: it may be used as an answer")
	b.do(chromedp.Click(chromedp.CSS(`figcaption a[href^="/e/"]`)))
	b.says("My sister Anna's phone is 555-0100.")
	b.do(chromedp.Navigate(site + "/memory?word=erasure"))
	b.do(chromedp.Click(chromedp.CSS(`.memory .call a`)))
	b.says("Download the signed receipt")
	b.looks("erasure")

	b.do(chromedp.Navigate(site + "/audit"))
	b.do(chromedp.Click(chromedp.CSS(`form[action="/audit/verify"] button`)))
	b.says("ok: ")
	b.looks("audit")
	b.do(chromedp.Navigate(site + "/health"))
	b.says("Gateways that run now: 1")
	b.looks("health")

	// The server ends, and comes again: the open page goes on where it was.
	b.do(chromedp.Navigate(site + "/"))
	b.until(`document.querySelectorAll("#rows tr").length > 0`)
	s.press(ctrlC)
	s.exits()
	b.until(`document.querySelector("#stream.lost") !== null`)
	_, link, _ = consoled(t, "127.0.0.1:"+port, more...)
	call("close_ticket", `{"id":"INC-7777","resolution":"fixed"}`)
	newest := eval[string](b, `document.querySelector("#rows tr").dataset.index`)
	other.do(chromedp.Navigate(link))
	other.says("Live")
	b.until(fmt.Sprintf(`document.querySelector("#rows tr").dataset.index > %s && document.querySelector("#stream.follows") !== null`, newest))

	// Without a script every page is whole.
	b.do(protocol(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(site+"/"))
	b.do(chromedp.WaitVisible(chromedp.CSS("#rows")))
	for path, shows := range map[string]string{"/charts": ".columns", "/memory": ".memory", "/policy/replay": "#policy", "/tools": ".tools", "/policy": ".source", "/approvals": ".card"} {
		b.do(chromedp.Navigate(site+path), chromedp.WaitVisible(chromedp.CSS(shows)))
	}
	b.do(protocol(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{}))
	b.do(chromedp.Navigate(site+"/"), chromedp.Click(chromedp.CSS(".who button")))
	b.says("You are signed out.")
	b.do(chromedp.Navigate(site + "/approvals"))
	b.says("Sign in")
	if eval[string](b, "document.cookie") != "" {
		t.Error("a script can read the cookie")
	}
}

// TestConsoleSwap: what an agent does while a person aims changes nothing under his pointer,
// and a click that was on its way when a page came is no answer to what it shows.
func TestConsoleSwap(t *testing.T) {
	b := newBrowser(t)
	policy, state := approving(t, example.Policy()), ownState(t)
	_, link, code := consoled(t, "127.0.0.1:0", "--state", state, "--config", policy)
	site := found(t, `(http://[^/]+)/`, link)
	closes := func(id string) (out string) {
		out, _ = piped77(t, "", "call", "--state", state, "--session", "demo", "close_ticket", `{"id":"`+id+`","resolution":"fixed"}`)
		return out
	}
	b.do(chromedp.Navigate(link))
	b.says("Live")
	if eval[bool](b, `document.querySelector(".first") !== null`) {
		t.Error("it says what to try with the example, and other servers may run")
	}
	closes("INC-0001")
	b.until(`document.querySelector("#rows tr") !== null`) // an empty page reads itself anew, which would end this step's navigation
	b.do(chromedp.Navigate(site + "/approvals"))
	b.alive()
	b.do(chromedp.SetValue(chromedp.CSS(".card input[name=code]"), code), chromedp.Click(chromedp.CSS(".card button.yes")))
	b.says("You said yes to ") // the code is asked for no more
	b.do(chromedp.Navigate(site + "/"))
	b.says("Live")
	closes("INC-1042")
	closes("INC-6666")
	b.do(chromedp.Navigate(site + "/approvals"))
	b.until(`document.querySelectorAll(".card").length === 2`)
	// A script's click is no quicker than a person's: the card was not there long enough.
	eval[bool](b, `(() => { document.querySelector(".card button.yes").click(); return true })()`)
	b.alive()
	const place = `(() => { const r = document.querySelector(".card button.yes").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`
	at := eval[[]float64](b, place)
	first := b.text(".card pre.bytes")
	under := fmt.Sprintf(`document.elementFromPoint(%v, %v).closest(".card").querySelector("pre").innerText`, at[0], at[1])
	if got := eval[string](b, under); got != first || !strings.Contains(got, "INC-1042") {
		t.Fatalf("he aims at %s", got)
	}
	// It passes now, so that its card goes; and something else waits.
	piped77(t, "", "call", "--state", state, "--session", "demo", "search_tickets", `{"query":""}`)
	closes("INC-1042")
	b.until(`document.querySelector(".card.gone")`)
	b.says("What waits has changed")
	if got := eval[string](b, under); got != first {
		t.Errorf("under the pointer stands %s", got)
	}
	if n := eval[int](b, `document.querySelectorAll(".card").length`); n != 2 {
		t.Errorf("%d cards", n)
	}
	b.do(chromedp.MouseClickXY(at[0], at[1]))
	b.do(chromedp.Click(chromedp.CSS("#stream a")))
	b.until(`document.querySelectorAll(".card").length === 1 && document.querySelector("pre.bytes").innerText.includes("INC-6666")`)
	if eval[bool](b, `document.querySelector("#said") !== null`) {
		t.Errorf("an answer was taken: %s", b.text("#said"))
	}
	b.alive()
	b.do(chromedp.Click(chromedp.CSS(".card button.no")))
	b.says("You said no to ")

	// A list fills by itself, and says on what an answer was given. Nothing moves of what somebody is
	// about to press, and who cannot see it is told.
	other := b.tab()
	other.do(chromedp.Navigate(site + "/approvals"))
	other.says("Nothing waits")
	const signOut = `(() => { const r = document.querySelector(".who button").getBoundingClientRect(); return [r.x, r.y, document.activeElement.innerText].join() })()`
	eval[bool](other, `(() => { document.querySelector(".who button").focus(); return true })()`)
	aimed := eval[string](other, signOut)
	asked, second := make(chan string), make(chan string)
	go func() { asked <- closes("INC-2222") }()
	b.until(`document.querySelector(".card pre.bytes")?.innerText.includes("INC-2222")`)
	b.says("You said no to ")
	other.until(`document.querySelector("#stream[role=status]").innerText.includes("A new question waits") && document.title.startsWith("(1) ") && document.querySelector("h1").innerText.includes("1 waiting")`)
	if got := eval[string](other, signOut); got != aimed || eval[bool](other, `document.body.innerText.includes("Nothing waits")`) {
		t.Errorf("he aims at %s, and aimed at %s", got, aimed)
	}

	// Another one comes below the card in which somebody is typing.
	const here = `(() => { const c = document.querySelector(".card"), r = c.querySelector("button.no").getBoundingClientRect(); return [c.id, r.x, r.y, document.activeElement === c.querySelector("summary")].join() })()`
	other.alive()
	eval[bool](other, `(() => { document.querySelector(".card summary").focus(); return true })()`)
	aimed = eval[string](other, here)
	go func() { second <- closes("INC-3333") }()
	other.until(`document.querySelectorAll(".card").length === 2 && document.querySelectorAll(".card")[1].innerText.includes("INC-3333") && document.title.startsWith("(2) ")`)
	if still := eval[[]bool](other, `[...document.querySelectorAll(".card")].map(c => c.querySelector("button.yes").ariaDisabled === "true")`); !slices.Equal(still, []bool{false, true}) {
		t.Errorf("still are %v: what is new is, and what he reads is not", still)
	}
	if got := eval[string](other, here); got != aimed {
		t.Errorf("he is at %s, and was at %s", got, aimed)
	}
	other.alive()
	other.look("approvals-new")
	other.do(chromedp.KeyEvent("r"))
	other.until(`document.activeElement.matches("#stream a")`)
	other.do(chromedp.KeyEvent("\r"))
	other.until(`document.activeElement.matches(".card")`)
	other.do(chromedp.Click(chromedp.CSS(".card button.no")))
	b.until(`document.querySelector(".card.gone")`)
	b.says("Refused: " + account() + " said no. What was decided")
	other.until(`document.querySelectorAll(".card").length === 1`)
	other.alive()
	other.do(chromedp.Click(chromedp.CSS(".card button.no")))
	b.until(`document.querySelectorAll(".card.gone").length === 2`)
	<-second
	<-asked
	b.do(chromedp.Click(chromedp.CSS(".went a")))
	b.until(`location.search.includes("session=s_") && document.querySelector("#rows .word").innerText === "refused"`)

	// Bytes are drawn in their order, whatever the direction of their script.
	b.do(chromedp.Navigate(site + "/"))
	b.says("Live")
	go func() { asked <- closes("א 100 900 ב") }()
	b.do(chromedp.Navigate(site + "/approvals"))
	b.alive()
	if wrong := eval[string](b, `["pre.bytes", "code.value"].filter(s => {
		const at = document.querySelector(".card " + s), texts = document.createTreeWalker(at, NodeFilter.SHOW_TEXT), r = document.createRange();
		let last = -1, back = false;
		while (texts.nextNode()) for (let i = 0; i < texts.currentNode.length; i++) {
			r.setStart(texts.currentNode, i); r.setEnd(texts.currentNode, i + 1);
			back ||= r.getBoundingClientRect().left < last; last = r.getBoundingClientRect().left;
		}
		return back || !at.innerText.includes("א 100 900");
	}).join(" ")`); wrong != "" {
		t.Errorf("not in their order are the bytes of %s", wrong)
	}
	b.do(chromedp.Click(chromedp.CSS(".card button.no")))
	b.says("You said no to ")
	<-asked
}
