// Package console is the web console: a browser's view of what was decided, and one more
// place where a person answers what waits. It reads what a log proves, and answers through
// the one queue. It decides nothing, and reaches neither a server nor a gateway.
//
// # Who gets in
//
// A person, by a link that works once within a minute and is shown at a terminal alone
// (Link); at the public address, where there is one, by the token of a registered client that
// is a person's or an operator's. A cookie stands for him then. A login is of this process: it
// is in memory, ends when nobody asked for anything for an hour, after twelve hours in any
// case, with its client's registration, and with the process. The first yes of a login needs
// a code from the terminal, or the token, once more, because a program may drive the tabs of a
// browser that is logged in. Nothing else is believed: no token opens anything but by its
// form, and a request that shows one otherwise is refused.
//
// # Where it is
//
// Cookies know no ports: whoever listens on another port of the same host is sent them, and
// what an agent starts may listen. So the console has a host of its own, Options.Host, which
// nobody else knows, and Options.Public where a proxy of the operator's has TLS. A login is of
// one of them, and a request to a third is never logged in.
//
// # What a page may do
//
// Every page is whole without a script. What others wrote is escaped by html/template, its
// hidden characters are drawn, and the policy of a page lets in no script but the one that
// is embedded here.
package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"embed"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/story"
)

// Options are what a console shows and answers through. All are needed but Try, and what is
// said to be of Public.
type Options struct {
	Log   story.Log // each record and value proven
	Queue *approval.Queue
	// Elsewhere is what waits at other gateways.
	Elsewhere Elsewhere
	// Host is the one host, with its port, on which a link lets somebody in.
	Host string
	// Public is the one host, with its port where its origin has one, at which browsers reach the
	// console by TLS and a token lets somebody in; "" for none.
	Public string
	// Client returns the principal of a token that lets its owner in, and Worth what an answer of
	// that principal is worth now; ok is false where there is none, or none any more. They are of
	// Public.
	Client func(token string) (principal string, ok bool)
	Worth  func(principal string) (label writ.Label, ok bool)
	// Foreign says, in a sentence, why a request is none of a page of this server, "" where it is.
	Foreign func(*http.Request) string
	// By is who answers at Host, as the operator knows him.
	By string
	// Ending is closed when the server is to end.
	Ending <-chan struct{}
	// Explain tells of a decision and of what came of its call, as far as that is known now and
	// stands within so many records behind it.
	Explain func(ctx context.Context, session, n string, within uint64) (*story.Explained, error)
	// Prove writes the proof of both, with their values or without; Verify checks the whole log and says what it found; Export writes it as
	// one file; Status says how the clients and the gateways are.
	Prove  func(ctx context.Context, session, n string, within uint64, bare bool) ([]byte, error)
	Verify func(ctx context.Context, progress func(done, of int64)) (found string, ok bool, err error)
	Export func(ctx context.Context, w io.Writer) error
	Status func(ctx context.Context) (string, error)
	// Servers are those in force with their tools, and Contract is all that there is to say
	// of the tool of an id, nil where there is none.
	Servers  func(ctx context.Context) ([]Server, error)
	Contract func(ctx context.Context, id string) (*Contract, error)
	// Sessions are those that are registered, and Names what they are kept under, by their ids.
	Sessions func(ctx context.Context) iter.Seq2[audit.Session, error]
	Names    func(ctx context.Context) map[string]string
	Policy   func(ctx context.Context) (*Policy, error) // in force
	// Replay judges recorded calls by another policy's text, and writes nothing.
	Replay func(ctx context.Context, text []byte, progress func(done, of int)) (*Replayed, error)
	// Learned is what recorded calls of a tool would need no question for, and Friction the tools
	// that are asked about most; learn is the command that ends it, "" where nothing can be kept.
	Learned  func(ctx context.Context, id string) (*Learned, error)
	Friction func(ctx context.Context) (most []Friction, learn string, err error)
	Memory   Memory
	Clock    func() time.Time
	// Try is what a page without a decision says to type in a terminal, where there is
	// something to try.
	Try []Try
}

// Try is one thing to try: what its commands are, the word for what comes of the last, and
// what more is to be seen.
type Try struct {
	Title, Says string
	Commands    []string
	Ends, Shows string
}

// Console is an http.Handler.
type Console struct {
	o     Options
	mux   *http.ServeMux
	pages map[string]*template.Template

	mu     sync.Mutex // guards what stands to the next gap
	links  map[key]link
	logins map[key]*login
	code   code // good for any login
	check  check
	waited map[string]approval.Question // lately, by their ids
	replay *replay                      // the one that is under way, or was made last

	streams seats
	health  seats // looks at the gateway
	signing seats // looks at a token
	export  seats
}

// seats are for so many at a time.
type seats chan struct{}

// take is one that is free, until leave.
func (s seats) take() (leave func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	default:
		return nil, errBusy
	}
}

// await is one that comes free before a request ends.
func (s seats) await(x *request) (leave func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-x.Context().Done():
		return nil, errBusy
	}
}

// during has a request served while it has one.
func (s seats) during(serve func(*request) error) func(*request) error {
	return func(x *request) error {
		leave, err := s.await(x)
		if err != nil {
			return err
		}
		defer leave()
		return serve(x)
	}
}

//go:embed templates static
var files embed.FS

// Bounds on what one request reads and shows.
const (
	maxForm    = 64 << 10
	maxStreams = 16
	patience   = 20 * time.Second // of one page
)

// New returns the console.
func New(o Options) *Console {
	c := &Console{o: o, mux: http.NewServeMux(), pages: map[string]*template.Template{}, links: map[key]link{}, logins: map[key]*login{}, waited: map[string]approval.Question{},
		streams: make(seats, maxStreams), health: make(seats, 1), signing: make(seats, maxSigning), export: make(seats, 1)}
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"draw": draw, "drawBytes": drawBytes, "marked": marked, "hit": hit, "prose": prose, "rests": rests, "stamp": c.stamp, "dict": dict,
		"words": words, "clip": clip, "policyAt": policyAt, "evidenceAt": evidenceAt, "lines": lines, "seenAt": seenAt,
	}).ParseFS(files, "templates/layout.html"))
	names, _ := fs.Glob(files, "templates/*.html")
	for _, name := range names {
		name = strings.TrimPrefix(name, "templates/")
		if name != "layout.html" {
			c.pages[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "templates/"+name))
		}
	}
	for _, r := range c.routes() {
		c.mux.HandleFunc(r.pattern, c.admit(r))
	}
	return c
}

// A route is one place of the console. Who is not logged in reaches only those that are
// open; any other POST needs the token of its form.
type route struct {
	pattern string
	open    bool
	serve   func(*request) error
	places  []string // of the query, which are numbers: request.place
}

func (c *Console) routes() []route {
	return []route{
		{"GET /static/{file}", true, c.static, nil},
		{"GET /login/{key}", true, c.enter, nil},
		{"POST /login", true, c.sign, nil},
		{"POST /logout", false, c.leave, nil},
		{"GET /{$}", false, c.live, []string{"before", "after"}},
		{"GET /events", false, c.events, []string{"after"}},
		{"GET /d/{session}/{n}", false, c.decision, nil},
		{"GET /d/{session}/{n}/json", false, c.decisionJSON, nil},
		{"GET /d/{session}/{n}/proof", false, c.proof, nil},
		{"GET /d/{session}/{n}/value/{name}", false, c.value, nil},
		{"GET /e/{session}/{number}", false, c.evidence, nil},
		{"GET /sessions", false, c.sessions, nil},
		{"GET /s/{session}", false, c.session, []string{"from", "at"}},
		{"GET /approvals", false, c.approvals, nil},
		{"POST /approvals/{id}", false, c.answer, nil},
		{"GET /tools", false, c.health.during(c.tools), nil},
		{"GET /policy", false, c.health.during(c.policy), []string{"from", "at"}},
		{"GET /policy/replay", false, c.replayed, nil},
		{"POST /policy/replay", false, c.replays, nil},
		{"GET /charts", false, c.charts, nil},
		{"GET /memory", false, c.memory, []string{"before"}},
		{"GET /memory/{namespace}/{id}", false, c.belief, []string{"from"}},
		{"GET /memory/{namespace}/{id}/receipt", false, c.receipt, nil},
		{"GET /audit", false, c.audit, []string{"before", "after"}},
		{"POST /audit/verify", false, c.verify, nil},
		{"GET /audit/export", false, c.exported, nil},
		{"GET /health", false, c.health.during(c.status), nil},
		{"/", false, func(*request) error { return errNoPage }, nil},
	}
}

// request is one that was let in.
type request struct {
	*http.Request
	w     http.ResponseWriter
	login *login // nil where nobody is logged in
}

// A refusal is an error that is told as a page.
type refusal struct {
	status      int
	title, Text string
}

func (e *refusal) Error() string { return e.Text }

var (
	errNoPage     = &refusal{http.StatusNotFound, "Nothing here", "There is no such page."}
	errNoRecord   = &refusal{http.StatusNotFound, "No such record", "The log has no record of that name, or its bytes were erased."}
	errForged     = &refusal{http.StatusForbidden, "Not done", "The form was not one of this login. Nothing was done: open the page again."}
	errBusy       = &refusal{http.StatusTooManyRequests, "One at a time", "That is being done already. Try again when it has ended."}
	errElsewhere  = &refusal{http.StatusForbidden, "Refused", "That lets nobody in at this address."}
	errLong       = &refusal{http.StatusServiceUnavailable, "That takes too long", "The page could not be made in time. What it is of can be read with writ audit show."}
	errNotAllowed = &refusal{http.StatusMethodNotAllowed, "Refused", "That method is not known here."}
)

// headers are on every answer. The referrer goes to this very origin alone, because
// without one a browser hides where a form comes from as well.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
		"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
	"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
	"Permissions-Policy": "camera=(), microphone=(), geolocation=(), clipboard-read=()",
}

func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for k, v := range headers {
		w.Header().Set(k, v)
	}
	if c.IsPublic(r) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	x := &request{r, w, nil}
	why := c.o.Foreign(r)
	if why == "" && r.Header.Get("Authorization") != "" {
		why = "The request has the field Authorization, which the console takes from nobody. A proxy with a password of its own takes the field off."
	}
	if why != "" {
		c.fail(x, &refusal{http.StatusForbidden, "Refused", why})
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		c.fail(x, errNotAllowed)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// admit is a route behind the checks of who asks.
func (c *Console) admit(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if !strings.HasSuffix(to.pattern, "/events") && !strings.HasSuffix(to.pattern, "/export") {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, patience)
			defer cancel()
		}
		x := &request{r.WithContext(ctx), w, nil}
		if !to.open {
			if x.login = c.loggedIn(r, !strings.HasSuffix(to.pattern, "/events") && !r.URL.Query().Has("again")); x.login == nil {
				c.out(x, "")
				return
			}
		}
		if r.Method == http.MethodPost && !to.open && !c.formed(x, to) {
			return
		}
		err := x.placed(to.places)
		if err == nil {
			err = to.serve(x)
		}
		if err != nil {
			c.fail(x, err)
		}
	}
}

// formed reads the form of a request, and reports whether it is one of its login; what is not is
// answered.
func (c *Console) formed(x *request, to route) bool {
	room, parse := int64(maxForm), x.ParseForm
	if to.pattern == "POST /policy/replay" && strings.HasPrefix(x.Header.Get("Content-Type"), "multipart/form-data") {
		room, parse = maxForm+maxPolicyText, func() error { return x.ParseMultipartForm(maxForm + maxPolicyText) }
	}
	x.Body = http.MaxBytesReader(x.w, x.Body, room)
	switch {
	case parse() != nil || x.login == nil || subtle.ConstantTimeCompare([]byte(x.PostForm.Get("form")), []byte(x.login.form)) != 1:
		c.fail(x, errForged)
		return false
	case c.over(x.login): // while the form came
		c.out(x, "")
		return false
	}
	return true
}

func (c *Console) fail(x *request, err error) {
	no, ok := errors.AsType[*refusal](err)
	switch {
	case ok:
	case errors.Is(err, audit.ErrNotFound):
		no = errNoRecord
	case errors.Is(err, audit.ErrAltered):
		no = &refusal{http.StatusInternalServerError, "The log was altered", "What is stored is not what was recorded: " + err.Error() + ". Run writ audit verify, and keep a copy of the state directory."}
	default:
		no = &refusal{http.StatusInternalServerError, "That cannot be shown", err.Error()}
	}
	c.show(x, no.status, "fault.html", no.title, no)
}

type page struct {
	Title, Path string
	Form        string // the token of this login's forms
	In          bool   // somebody is logged in
	Public      bool   // a token lets in here
	By          string
	Waiting     int
	Main        any
}

// show answers with a page. It is made whole before a byte of it goes out.
func (c *Console) show(x *request, status int, name, title string, main any) error {
	p := page{Title: title, Path: x.URL.Path, Main: main, Public: c.IsPublic(x.Request)}
	if x.login != nil {
		open, _ := c.open(x.Context(), false)
		p.In, p.By, p.Form, p.Waiting = true, c.by(x.login), x.login.form, len(open)
	}
	var b bytes.Buffer
	if err := c.pages[name].ExecuteTemplate(&b, "layout.html", p); err != nil {
		http.Error(x.w, "the page cannot be made", http.StatusInternalServerError)
		return nil
	}
	x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	x.w.WriteHeader(status)
	x.w.Write(b.Bytes())
	return nil
}

// asked is a value of the query, at most so many bytes of it.
func (x *request) asked(name string) string {
	v := x.URL.Query().Get(name)
	return v[:min(len(v), 500)]
}

// contained does what a command does, beside the requests. A panic in it, of a text that
// somebody pasted say, ends that and not the gateway with everybody who uses it.
func contained(command string, do func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it broke off by a fault of Writ's own, and found nothing; " + command + " shows which, in a terminal")
		}
	}()
	return do()
}

func (x *request) leadTo(page string) error {
	x.w.Header().Set("Location", page)
	x.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// record is one record of a session; the error is audit.ErrNotFound where there is none.
func (c *Console) record(ctx context.Context, session string, n uint64) (r audit.ProvenRecord, err error) {
	for it, err := range c.o.Log.Read(ctx, session, n) {
		if err != nil || it.N != n {
			return r, cmp.Or(err, audit.ErrNotFound)
		}
		r.Item = it
		r.Record, err = audit.ParseRecord(it.Leaf)
		return r, err
	}
	return r, audit.ErrNotFound
}

func (c *Console) static(x *request) error {
	name := x.PathValue("file")
	kind := map[string]string{"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}[name]
	b, err := files.ReadFile("static/" + name)
	if err != nil || kind == "" {
		return errNoPage
	}
	x.w.Header().Set("Content-Type", kind)
	x.w.Write(b)
	return nil
}

// download says that what the answer has is a file.
func (x *request) download(name, kind string) {
	x.w.Header().Set("Content-Type", kind)
	x.w.Header().Set("Content-Disposition", "attachment; filename="+url.PathEscape(name))
}

func (x *request) file(name, kind string, b []byte) error {
	x.download(name, kind)
	x.w.Write(b)
	return nil
}

// given are names and values as a query, without those that are empty.
func given(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q.Encode()
}

// stamp is a time as a list says it: of today without the day.
func (c *Console) stamp(t time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == c.o.Clock().Local().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}
