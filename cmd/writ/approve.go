package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/policy"
)

func approveCommand() *cobra.Command {
	var f flags
	var yes, no bool
	var keep string
	c := f.take(&cobra.Command{
		Use: "approve [ID]", Short: "List the calls that wait for a person, or answer one",
		Long: "List the calls that wait for a person, or answer one: what it would do, which of its values\n" +
			"nothing vouches for, and where each of them was seen. A yes is good for that very call,\n" +
			"once, for ten minutes. From now on, where that is offered, is a yes that grows the policy by lines\n" +
			"that writ grown lists and takes back. Answer from a terminal of your own: a process that the agent or a\n" +
			"server started is not heard. writ watch shows each question as it comes.",
		Args: needs("", "at most one id, and with it --yes or --no; --keep goes with --yes", func(args []string) bool {
			return len(args) <= 1 && !(yes && no) && !((yes || no) && len(args) == 0) && (keep == "" || yes)
		}),
		RunE: func(c *cobra.Command, args []string) error {
			all, err := f.waiting(c.Context())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return f.showWaiting(c, all)
			}
			i := slices.IndexFunc(all, func(w waiting) bool { return strings.EqualFold(w.ID, args[0]) })
			if i < 0 {
				return cli.Fail(cli.ExitData, "writ approve", "no call waits under that id, or not any more")
			}
			w, a := &all[i], approval.Answer{Yes: yes, Keep: approval.Keep(keep)}
			if !yes && !no {
				tellMore(c.Context(), f.state, &w.Shown)
				if a, err = newLines(c.Context(), c.InOrStdin(), c.OutOrStdout()).answer(c.OutOrStdout(), &w.Shown); err != nil {
					return err
				}
			}
			return w.say(c.Context(), c.OutOrStdout(), a)
		},
	}, "state", "json")
	c.Flags().BoolVar(&yes, "yes", false, "allow it, this once")
	c.Flags().BoolVar(&no, "no", false, "refuse it")
	c.Flags().StringVar(&keep, "keep", "", "and keep from now on `WHAT` is offered: source; server, where the server alone gives what stands there; ours, where our own people alone can write there; closed, where they alone can add to the collection; place, every call of the tool on this site; or value")
	return c
}

func watchCommand() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "watch", Short: "Show decisions as they are made, and answer the calls that wait for a person", Args: cli.NoArgs,
		Long: "Show each decision as it is put on record in the state directory, a line each, as writ audit\n" +
			"tail does; and each call that waits for a person as it comes, and answer it: those of the gateways\n" +
			"that run, and of each that is started later. While this runs such calls are held for 45 seconds;\n" +
			"where nobody watches they are refused. What is decided while a question stands here comes after it.",
		RunE: func(c *cobra.Command, _ []string) error { return f.watch(c) },
	}, "state")
}

// waiting is a question with the gateway that holds it.
type waiting struct {
	approval.Shown
	client *http.Client
}

func (f *flags) showWaiting(c *cobra.Command, all []waiting) error {
	shown := []approval.Shown{}
	for i := range all {
		tellMore(c.Context(), f.state, &all[i].Shown)
		shown = append(shown, all[i].Shown)
	}
	return f.show(c, shown, func(w io.Writer) {
		for _, q := range shown {
			columns, _ := terminalSize(w)
			q.Print(w, columns)
			fmt.Fprintf(w, "  try: writ approve %s\n", q.ID)
		}
		when(w, len(shown) == 0, "nothing waits for an answer\n")
	})
}

// waiting lists what waits in all gateways.
func (f *flags) waiting(ctx context.Context) (out []waiting, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	doors, err := f.doors()
	if err != nil {
		return nil, err
	}
	for _, c := range doors {
		err := questions(ctx, c, "", func(qs []approval.Shown, _ string) {
			for _, q := range qs {
				out = append(out, waiting{q, c})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// questions hands on each list of open questions that a gateway sends: the one of now, or
// with ?watch those that follow too, and why it does not hear who watches, "" where it does.
func questions(ctx context.Context, door *http.Client, query string, each func(qs []approval.Shown, unheard string)) error {
	resp, err := knock(ctx, door, "GET /approvals"+query, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines, unheard := bufio.NewReader(resp.Body), resp.Header.Get(approval.Unheard)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var qs []approval.Shown
		if err != nil || json.Unmarshal(line, &qs) != nil {
			return cli.Fail(cli.ExitIO, "", "the gateway's answer broke off")
		}
		each(qs, unheard)
	}
}

// say answers a question, and tells what became of it and of its call.
func (w *waiting) say(ctx context.Context, out io.Writer, a approval.Answer) error {
	said, err := w.answer(ctx, out, a)
	if said != nil && said.Told {
		sentence(out, said.Late())
	}
	return err
}

// answer answers a question, and says what became of it. The reply is nil where the answer does
// not count; where it does, there may be an error too: that it kept nothing.
func (w *waiting) answer(ctx context.Context, out io.Writer, a approval.Answer) (*approval.Reply, error) {
	status, r, err := w.reply(ctx, a)
	if err != nil {
		return nil, err
	}
	word := map[bool]string{true: "yes", false: "no"}
	switch {
	case status == http.StatusOK:
		fmt.Fprintf(out, "%s: on record\n", word[a.Yes])
		kept(out, r.Lines)
		if r.Error != "" {
			return &r, cli.Fail(cli.ExitData, "writ reload", "%s", cli.OneLine(r.Error, 200))
		}
		return &r, nil
	case status == http.StatusConflict && r.By != "":
		return nil, cli.Fail(cli.ExitData, "writ approve", "%s answered first, with %s", cli.OneLine(r.By, 80), word[r.Yes])
	case status == http.StatusForbidden:
		return nil, cli.Fail(cli.ExitRefused, ownWindow(r.Error), "the answer is not heard: %s", cli.OneLine(r.Error, 200))
	}
	return nil, cli.Fail(cli.ExitData, "writ approve", "%s", cli.OneLine(r.Error, 200))
}

// reply hands an answer to the gateway that asks, and returns what that says of it.
func (w *waiting) reply(ctx context.Context, a approval.Answer) (status int, r approval.Reply, err error) {
	said := map[string]any{"yes": a.Yes}
	if a.Keep != "" {
		said["keep"] = a.Keep
	}
	b, _ := json.Marshal(said) // a truth and a word
	status, err = exchange(ctx, w.client, "POST /approvals/"+w.ID, "", b, 1<<16, &r)
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" { // it was reached when it asked
		err = cli.Fail(cli.ExitData, "", "the client whose call waited has ended, or its gateway: the answer counts for nothing, and nothing was done by it")
	}
	return status, r, err
}

// kept says what grew.
func kept(out io.Writer, lines []policy.Grown) {
	for _, g := range lines {
		theirs(out, "from now on: ", approval.Sentence(g), 0)
	}
	when(out, len(lines) > 0, "writ grown shows it, and writ grown remove takes it back\n")
}

// readAnswer reads y, f or n; anything else is no answer, and a yes to a call that was
// not shown whole is none before its bytes were.
func readAnswer(in *lines, out io.Writer, q *approval.Shown) (a approval.Answer, err error) {
	_, whole := q.Whole(terminalSize(out))
	keeps, keys := "", "y, n or b"
	if len(q.FromNowOn) > 0 {
		keeps, keys = "[f] from now on …   ", "y, f, n or b"
	}
	early := in.early()
	for tries := 0; tries < 5; tries++ {
		fmt.Fprintf(out, "[y] this once   %s[n] no   [b] exact bytes > ", keeps)
		var line string
		line, err = in.ReadString('\n')
		if err == nil && early() {
			sentence(out, "not taken: it was typed as this question took the place of another one")
			tries--
			continue
		}
		switch said := strings.ToLower(strings.TrimSpace(line)); {
		case said == "b":
			theirs(out, "  | ", q.Arguments, 0)
			if q.Answers != "" {
				fmt.Fprintln(out, "  and as answers inside the call:")
				theirs(out, "  | ", q.Answers, 0)
			}
			whole = true
		case said == "n", said == "no":
			return approval.Answer{}, nil
		case (said == "y" || said == "yes" || said == "f" && keeps != "") && !whole:
			sentence(out, "the arguments are too long to stand above: look at them first, with b")
		case said == "y", said == "yes":
			return approval.Answer{Yes: true}, nil
		case said == "f" && keeps != "":
			if a.Keep, err = readKeep(in, out, q); a.Keep != "" {
				a.Yes = true
				return a, nil
			}
		case err == nil:
			sentence(out, "that is no answer: type "+keys+", then Enter")
		}
		if err != nil {
			break
		}
	}
	return approval.Answer{}, cli.Fail(cli.ExitUsage, "writ approve "+q.ID+" --no", "neither yes nor no: the question stays open")
}

// What a person answers to who can write a field, or add to a collection, "" where he does not know.
const onlyOurs, anyone, onlyGiven = "1", "2", "3"

// oneOf puts a question again where the answer is none of its keys, three times: then it is that
// he does not know.
func oneOf(ask func(format string, args ...any) (string, error), keys []string, format string, args ...any) (said string, err error) {
	again := ""
	for range 3 {
		if said, err = ask(again+format, args...); err != nil || said == "" || slices.Contains(keys, said) {
			return said, err
		}
		again = "That is none of " + strings.Join(keys, ", ") + ", nor Enter alone.\n"
	}
	return "", nil
}

// whoCan asks it. That the server alone gives what stands in a field is half an answer:
// strangers may have it do so.
func whoCan(ask func(format string, args ...any) (string, error), can string, given bool) (string, error) {
	const others = "[1] only our own people   [2] anyone   %s[Enter] I do not know > "
	third, keys := "", []string{onlyOurs, anyone}
	if given {
		third, keys = "[3] nobody: the server itself gives it, as the number of a ticket   ", append(keys, onlyGiven)
	}
	who, err := oneOf(ask, keys, "Who can %s?  "+others, can, third)
	if err == nil && given && who == onlyGiven {
		if who, err = oneOf(ask, keys[:2], "And who can have the server give one, as by opening a ticket, wherever the agent may look?  "+others, ""); err == nil && who == onlyOurs {
			return onlyGiven, nil
		}
		return anyone, err
	}
	return who, err
}

// whatIsGiven is of which fields the third answer may be given.
func whatIsGiven(offers []approval.Offer) map[string]bool {
	given := map[string]bool{}
	for _, o := range offers {
		for _, g := range o.Lines {
			for _, can := range approval.WhoCan([]policy.Grown{g}) {
				given[can] = given[can] || g.Writes == policy.WritesServer
			}
		}
	}
	return given
}

// writers are who can write what, as a person said. Of each thing he is asked once.
type writers struct {
	ask   func(format string, args ...any) (string, error)
	given map[string]bool
	said  map[string]string
}

// fit reports whether an offer rests on nothing but what he says of who can write there; ours is
// what he said last that our own people alone can, where it does not.
func (who *writers) fit(o *approval.Offer) (fits bool, ours string, err error) {
	for _, can := range approval.WhoCan(o.Lines) {
		if _, said := who.said[can]; !said {
			if who.said[can], err = whoCan(who.ask, can, who.given[can]); err != nil {
				return false, "", err
			}
		}
		needs := []string{onlyOurs, onlyGiven} // what the server gives to our own people alone strangers do not write
		if who.given[can] && o.Keep == approval.KeepServer {
			needs = needs[1:]
		}
		if !slices.Contains(needs, who.said[can]) {
			return false, ours, nil
		}
		ours = can
	}
	return true, ours, nil
}

// readKeep asks what is kept from now on of a call, "" for nothing: the lines it shows,
// and who can write there first where only he knows. Nothing but a plain yes keeps
// anything, typed after they were shown.
func readKeep(in *lines, out io.Writer, q *approval.Shown) (keep approval.Keep, err error) {
	ask := func(format string, args ...any) (string, error) {
		in.drop()
		fmt.Fprintf(out, format, args...)
		line, err := in.ReadString('\n')
		return strings.ToLower(strings.TrimSpace(line)), err
	}
	who := writers{ask: ask, given: whatIsGiven(q.FromNowOn), said: map[string]string{}}
	for _, o := range q.FromNowOn {
		fits, ours, err := who.fit(&o)
		if err != nil {
			return "", err
		}
		if !fits {
			if ours != "" { // a line lets a call pass, or it keeps nothing
				sentence(out, "What you said of who can "+cli.OneLine(ours, 250)+" is not kept by itself: this call would still be asked about.")
			}
			continue
		}
		fmt.Fprintln(out, askedToKeep(&o))
		for _, g := range o.Lines {
			theirs(out, "  ", approval.Sentence(g), 0)
			theirs(out, "      ", approval.Line(g), 0)
		}
		if server, _, _ := strings.Cut(string(o.Lines[0].From), "/"); o.Keep == approval.KeepOurs && server == q.Server {
			fmt.Fprintf(out, "A call that sends %s words of the agent's beside it makes later sessions ask again, until you looked at what\n"+
				"it wrote there (writ places).\n", cli.OneLine(server, 40))
		}
		yes, err := ask("[y] keep it   [Enter] no > ")
		switch {
		case err != nil:
			return "", err
		case yes == "y" || yes == "yes":
			return o.Keep, nil
		}
		if o.Keep != approval.KeepPlace { // the call alone may be less than he wanted, and all he wants
			return "", nil
		}
	}
	return "", nil
}

// askedToKeep is what is asked of one thing that may be kept.
func askedToKeep(o *approval.Offer) string {
	switch {
	case o.Keep == approval.KeepClosed:
		return "From now on, without a question, wherever a member of it is asked for?"
	case o.Keep == approval.KeepPlace:
		return "From now on every call of this tool on this site, whatever its pages say, without a question?"
	case o.Keep == approval.KeepValue && len(o.Lines[0].Texts) > 0:
		return "From now on this call with any words in these places, without a question? They are judged each time, and one place more or fewer is another call."
	case o.Keep == approval.KeepValue && o.Lines[0].Call != nil:
		return "From now on this very call alone, without a question? A free text that is not shown here is judged each time."
	case o.Keep == approval.KeepValue:
		return "From now on this exact value alone, whoever wrote it, without a question?"
	}
	return "From now on for this field from this source, without a question?"
}

// watching is what writ watch is at.
type watching struct {
	*flags
	*board
	out   io.Writer
	heard chan watched
	known map[string]bool // gateways, by their ids
	told  map[string]bool // why they do not hear this terminal
}

func (f *flags) watch(c *cobra.Command) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	out := c.OutOrStdout()
	open := &board{open: map[string][]waiting{}, shown: map[string]func(){}, changed: make(chan struct{})}
	w := &watching{f, open, out, make(chan watched), map[string]bool{}, map[string]bool{}}
	if err := w.look(ctx); err != nil {
		return err
	}
	unheard := w.begin(ctx)
	if ctx.Err() != nil {
		return nil
	}
	in := newLines(ctx, c.InOrStdin(), out)
	seen, err := f.recordedBefore(ctx)
	if err != nil {
		return err
	}
	made := make(chan []story.Line)
	go f.decided(ctx, seen, made)
	holds := ""
	if len(unheard) == 0 {
		holds = "; calls that only a person can let pass are held for 45 s"
	}
	sentence(out, "watching: decisions as they are made"+holds)
	for _, why := range unheard {
		w.tellUnheard(why)
	}
	if len(w.known) == 0 {
		sentence(out, "no gateway runs on this state directory yet; one that a client starts is watched as it comes")
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		q, next := w.next()
		select {
		case <-ctx.Done():
			return nil
		case at := <-w.heard:
			if at.ended {
				delete(w.known, at.gateway)
			}
			w.tellUnheard(at.unheard)
		case <-tick.C:
			if err := w.look(ctx); err != nil {
				return err
			}
		case all := <-made: // no question stands here
			printNewest(out, all)
		case <-next:
			if q != nil {
				tellMore(ctx, f.state, &q.Shown)
				w.settle(ctx, q, in, out)
			}
		}
	}
}

// recordedBefore is how many records the log has. Where there is no log yet, all of it is new.
func (f *flags) recordedBefore(ctx context.Context) (n int64, err error) {
	_, st, err := toExplain(ctx, f.state)
	if err != nil {
		return 0, nil
	}
	defer st.Close()
	_, n, err = story.Newest(ctx, st, 0)
	return n, err
}

// printNewest prints decisions, of many the newest.
func printNewest(out io.Writer, all []story.Line) {
	more := max(0, len(all)-mostTold)
	when(out, more > 0, "… %s before these: writ audit show\n", cli.Number(more, "decision", "decisions"))
	for _, d := range all[more:] {
		d.PrintLine(out)
	}
}

// look follows the gateways that were not there before.
func (w *watching) look(ctx context.Context) error {
	at, doors, err := w.reach(false)
	for i, g := range at {
		if id := g.ID(); !w.known[id] {
			w.known[id] = true
			go w.follow(ctx, id, doors[i], w.heard)
		}
	}
	return err
}

// begin waits until each that is known has begun to tell, or ended: what is said then holds of
// all. It returns why some of them do not hear this terminal, by gateway.
func (w *watching) begin(ctx context.Context) (unheard map[string]string) {
	unheard = map[string]string{}
	for left := maps.Clone(w.known); len(left) > 0; {
		select {
		case <-ctx.Done():
			return nil
		case at := <-w.heard:
			delete(left, at.gateway)
			switch {
			case at.ended:
				delete(w.known, at.gateway)
				delete(unheard, at.gateway)
			case at.unheard != "":
				unheard[at.gateway] = at.unheard
			}
		}
	}
	return unheard
}

// tellUnheard says that a gateway holds no call for who watches here, of several once.
func (w *watching) tellUnheard(why string) {
	if why == "" || w.told[why] {
		return
	}
	w.told[why] = true
	sentence(w.out, "a gateway does not hear this terminal, and holds no call for it: "+cli.OneLine(why, 300))
	if hint := ownWindow(why); hint != "" {
		fmt.Fprintln(w.out, "try: "+hint)
	}
}

// ownWindow is what to try where a gateway does not hear a terminal; why may say so itself.
func ownWindow(why string) string {
	if why == localdoor.ErrLoose.Error() {
		return ""
	}
	return "the same in a terminal window of your own"
}

// watched is a gateway that has begun to tell what waits, and why it does not hear who
// watches, "" where it does and holds calls for him; or one that has ended.
type watched struct {
	gateway, unheard string
	ended            bool
}

// watchEvery is how soon a gateway that has just started is watched, and mostTold how many of
// the decisions are told that were made while a question stood.
const (
	watchEvery = time.Second
	mostTold   = 50
)

// decided hands on the decisions from an index of the log on, as they are made and as soon as
// there is a log. Who takes none of them holds it up, and is given them later.
func (f *flags) decided(ctx context.Context, seen int64, made chan<- []story.Line) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if dir, st, err := toExplain(ctx, f.state); err == nil {
			seen, _ = tail(ctx, dir, st, "", seen, func(all []story.Line) error {
				select {
				case made <- all:
				case <-ctx.Done():
				}
				return nil
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// board is what waits at the gateways that are watched, as each of them said last.
type board struct {
	mu      sync.Mutex
	open    map[string][]waiting // by gateway
	shown   map[string]func()    // by id, of those that are open: what ends the asking
	changed chan struct{}        // closed when they change
}

// follow keeps what waits at a gateway on the board until that ends. It says when the gateway
// has begun to tell it, and when it ended.
func (b *board) follow(ctx context.Context, id string, door *http.Client, heard chan<- watched) {
	say := func(at watched) {
		select {
		case heard <- at:
		case <-ctx.Done():
		}
	}
	var begin sync.Once
	tell := func(qs []approval.Shown) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open[id] = nil
		for _, q := range qs {
			b.open[id] = append(b.open[id], waiting{q, door})
		}
		maps.DeleteFunc(b.shown, func(id string, over func()) bool { return b.ends(id, over) })
		close(b.changed)
		b.changed = make(chan struct{})
	}
	_ = questions(ctx, door, "?watch", func(qs []approval.Shown, unheard string) {
		tell(qs)
		begin.Do(func() { say(watched{gateway: id, unheard: unheard}) })
	})
	tell(nil)
	say(watched{gateway: id, ended: true})
}

// ends ends the asking of a question that is not open any more. The caller holds mu.
func (b *board) ends(id string, over func()) bool {
	for _, all := range b.open {
		if slices.ContainsFunc(all, func(w waiting) bool { return w.ID == id }) {
			return false
		}
	}
	over()
	return true
}

// next is the first question that was not shown, nil for none; from the channel can be read
// when there is one, or when the board changed.
func (b *board) next() (first *waiting, ready <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.open {
		for i := range all {
			if w := &all[i]; b.shown[w.ID] == nil && (first == nil || w.Asked.Before(first.Asked)) {
				first = w
			}
		}
	}
	if first == nil {
		return nil, b.changed
	}
	now := make(chan struct{})
	close(now)
	return first, now
}

// settle shows a question and answers it, as long as it stands.
func (b *board) settle(ctx context.Context, w *waiting, in *lines, out io.Writer) {
	asking, over := context.WithCancel(ctx)
	defer over()
	b.mu.Lock()
	b.shown[w.ID] = over
	b.ends(w.ID, over) // it may have gone since it was found
	b.mu.Unlock()
	in.until(asking)
	defer in.until(ctx)
	a, err := in.answer(out, &w.Shown)
	if err == nil {
		err = w.say(ctx, out, a)
	} else if asking.Err() != nil && ctx.Err() == nil {
		in.gone = true
		fmt.Fprintln(out)
		sentence(out, "it waits no more: somebody answered it, its call passed or ended, or its time was over; nothing was answered here")
		return
	}
	if err != nil {
		fmt.Fprintf(out, "%s\n", cli.OneLine(err.Error(), 300))
	}
}

// answering says who answers over the local door: the account's own person, at a
// terminal that neither the client, this gateway nor a server of it has started.
func answering(from ...int) func(*http.Request) (string, writ.Label, error) {
	return func(r *http.Request) (string, writ.Label, error) {
		if err := localdoor.Apart(r.Context(), from...); err != nil {
			return "", 0, err
		}
		return account(), writ.User, nil
	}
}
