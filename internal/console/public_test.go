package console

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
)

const public = "writ.example.org"

func (r *rig) clientOf(token string) (string, bool) {
	_, ok := r.worth(token)
	return token, ok
}

func (r *rig) worth(principal string) (writ.Label, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	label, ok := r.clients[principal]
	return label, ok
}

// register registers clients, and nobody else.
func (r *rig) register(clients map[string]writ.Label) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients = clients
}

// there makes a request of a browser at the public address.
func (r *rig) there(method, path, cookie string, body url.Values, header ...string) *httptest.ResponseRecorder {
	if method == http.MethodPost {
		header = append([]string{"Origin", "https://" + public}, header...)
	}
	return r.ask(method, path, cookie, body, append([]string{"Host", public}, header...)...)
}

// signed is a browser that a token let in: its cookie, and the token of its forms.
func (r *rig) signed(token string) (cookie, form string) {
	r.t.Helper()
	w := r.there("POST", "/login", "", url.Values{"token": {token}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" || len(w.Result().Cookies()) != 1 {
		r.t.Fatalf("signing in: %d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	if c.Name != "__Host-writ-console" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		r.t.Errorf("the cookie: %s", c)
	}
	return c.Value, r.loggedInBy(c.Value).form
}

// TestPublicHost: who names the public host and is not signed in there is shown how to get in, and
// nothing else, whatever he asks for; so is who is signed in at another (K08, S01).
func TestPublicHost(t *testing.T) {
	r := newRig(t)
	r.register(map[string]writ.Label{"kim": writ.User})
	r.write("s_aaaaaaaaaaaaaaaa", open)
	near, nearForm, _ := r.in()
	far, farForm := r.signed("kim")
	known := paths()
	for _, path := range []string{"/mcp", "/mcp/s/x", "/metrics", "/healthz", "/readyz", "/approvals/x", "/login", "/say", "/reload", "/console"} {
		known["GET "+path] = path
	}
	for pattern, path := range known {
		method, _, stated := strings.Cut(pattern, " ")
		if !stated {
			method = "GET"
		}
		form := func(token string) url.Values {
			if method == "GET" {
				return nil
			}
			return url.Values{"form": {token}, "say": {"no"}}
		}
		want, shows := http.StatusUnauthorized, `action="/login"`
		switch path {
		case "/static/console.css":
			want, shows = http.StatusOK, ""
		case "/login/x":
			want, shows = http.StatusForbidden, ""
		}
		for name, w := range map[string]*httptest.ResponseRecorder{
			"nobody": r.there(method, path, "", form("")), "the cookie of a link": r.there(method, path, near, form(nearForm)),
			"and by its own name": r.there(method, path, "", form(nearForm), "Cookie", r.cookie(false)+"="+near),
		} {
			if w.Code != want || !strings.Contains(w.Body.String(), shows) || w.Header().Get("Strict-Transport-Security") == "" {
				t.Errorf("%s, %s: %d %s", pattern, name, w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), nearForm) || strings.Contains(w.Body.String(), "Sign out") {
				t.Errorf("%s, %s: it is let in", pattern, name)
			}
		}
		// Nor does a login of the public host count at the other, under either name.
		for _, cookie := range []string{"__Host-writ-console=" + far, r.cookie(false) + "=" + far} {
			if w := r.ask(method, path, "", form(farForm), "Cookie", cookie); strings.Contains(w.Body.String(), "Sign out") || want == http.StatusUnauthorized && path != "/login" && w.Code != want || strings.Contains(w.Body.String(), `action="/login"`) {
				t.Errorf("%s, signed in elsewhere: %d", pattern, w.Code)
			}
		}
		// What is not exactly that host, or is of another page, is nobody's (K02).
		for _, header := range [][]string{
			{"Host", "WRIT.example.org"}, {"Host", public + ":443"}, {"Host", public + "."}, {"Host", "x." + public}, {"Host", ""},
			{"Origin", "http://" + public}, {"Origin", "https://" + public + ":8443"}, {"Origin", "null"}, {"Origin", "https://evil.example"},
			{"Authorization", "Bearer kim"},
			{"X-Forwarded-Host", public, "Host", "evil.example"}, {"Forwarded", "host=" + public, "Host", "evil.example"},
		} {
			if w := r.there(method, path, far, form(farForm), header...); w.Code != http.StatusForbidden {
				t.Errorf("%s, %q: %d", pattern, header, w.Code)
			}
		}
	}
	if w := r.there("GET", "/", far, nil); w.Code != 200 || !strings.Contains(w.Body.String(), "Sign out") {
		t.Errorf("signed in: %d", w.Code)
	}
	if w := r.there("GET", "/mcp", far, nil); w.Code != http.StatusNotFound {
		t.Errorf("/mcp, signed in: %d", w.Code)
	}
	link, _ := r.Link()
	path := strings.TrimPrefix(link, "http://"+host)
	if w := r.there("GET", path, "", nil); w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
		t.Errorf("a link, there: %d", w.Code)
	}
	if w := r.ask("GET", path, "", nil); w.Code != http.StatusSeeOther {
		t.Errorf("and then here: %d", w.Code)
	}
	r.o.Public = ""
	if r.IsPublic(&http.Request{}) {
		t.Error("no host is the public one where there is none")
	}
}

// TestSigningIn: a person's token lets in, by its form alone; whatever else is sent has one and the
// same answer. A login ends with its client, also where another has its name (K06).
func TestSigningIn(t *testing.T) {
	r := newRig(t)
	r.register(map[string]writ.Label{"kim": writ.User, "ann": writ.Operator})
	nobody := ""
	for name, body := range map[string]url.Values{
		"nothing": {}, "none": {"token": {""}}, "an agent's, or nobody's": {"token": {"ide"}}, "two": {"token": {"kim", "kim"}}, "another field": {"code": {"kim"}}, "too much": {"token": {"kim"}, "x": {strings.Repeat("x", maxSign)}},
	} {
		w := r.there("POST", "/login", "", body)
		if w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: %d", name, w.Code)
		}
		if nobody == "" {
			nobody = w.Body.String()
		}
		if w.Body.String() != nobody {
			t.Errorf("%s has an answer of its own: %s", name, w.Body)
		}
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"in the address": r.there("POST", "/login?token=kim", "", url.Values{}), "there too": r.there("POST", "/login?token=kim", "", url.Values{"token": {"kim"}}),
		"by a GET": r.there("GET", "/login?token=kim", "", nil), "as JSON": r.there("POST", "/login", "", url.Values{"token": {"kim"}}, "Content-Type", "application/json"),
		"as the link's": r.there("GET", "/login/kim", "", nil), "here": r.ask("POST", "/login", "", url.Values{"token": {"kim"}}),
	} {
		if w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if len(r.logins) > 0 {
		t.Fatal("somebody is in")
	}
	// The form sent once more begins another login; neither has the other's token of forms.
	one, form1 := r.signed(" kim\n")
	two, form2 := r.signed("kim")
	if one == two || form1 == form2 {
		t.Error("the same login twice")
	}
	if w := r.there("POST", "/logout", one, url.Values{"form": {form2}}); w.Code != http.StatusForbidden {
		t.Errorf("another login's form: %d", w.Code)
	}
	if w := r.there("POST", "/logout", one, url.Values{"form": {form1}}); w.Code != 200 || !strings.Contains(w.Header().Get("Set-Cookie"), "__Host-writ-console=;") {
		t.Errorf("signing out: %d %s", w.Code, w.Header())
	}
	is := func(cookie string, want int, when string) {
		t.Helper()
		if w := r.there("GET", "/", cookie, nil); w.Code != want {
			t.Errorf("%s: %d, want %d", when, w.Code, want)
		}
	}
	is(one, 401, "signed out")
	r.later(idle - time.Second)
	is(two, 200, "before it was idle for too long")
	r.later(idle)
	is(two, 401, "idle for too long")

	// Removed: the next request, what is open, and a login of another client of that name.
	kim, _ := r.signed("kim")
	ann, _ := r.signed("ann")
	in := r.loggedInBy(kim)
	r.o.Elsewhere = another{t} // where he can answer nothing
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := httptest.NewRequestWithContext(ctx, "GET", "https://"+public+"/events?for=approvals", nil)
	req.RequestURI = "/events?for=approvals"
	req.AddCookie(&http.Cookie{Name: "__Host-writ-console", Value: kim})
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r.ServeHTTP(&flushed{ResponseRecorder: httptest.NewRecorder(), first: watched}, req)
	}()
	<-watched
	r.register(map[string]writ.Label{"kim, again": writ.Operator, "ann": writ.Operator})
	<-ended
	<-in.ended
	r.register(map[string]writ.Label{"kim": writ.User, "ann": writ.Operator})
	is(kim, 401, "its client was removed, and an open page told")
	r.register(map[string]writ.Label{"kim": writ.User})
	is(ann, 401, "its client was removed")
	r.register(map[string]writ.Label{"kim": writ.User, "ann": writ.Operator})
	is(ann, 401, "a login that ended does not come back")
}

// TestGoesOn: who signs in goes on at the page he asked for, and nowhere else.
func TestGoesOn(t *testing.T) {
	r := newRig(t)
	r.register(map[string]writ.Label{"kim": writ.User})
	for asked, want := range map[string]string{
		"/sessions": "/sessions", "/?tool=a%2Fb&status=refused": "/?status=refused&tool=a%2Fb", "/approvals?again": "/approvals", "/s/s_aaaaaaaaaaaaaaaa?at=3": "/s/s_aaaaaaaaaaaaaaaa?at=3",
		"/nothing/here": "/", "/events": "/", "/": "/", "/?tool=" + strings.Repeat("x", maxTo): "/",
	} {
		w := r.there("GET", asked, "", nil)
		page, to := w.Body.String(), ""
		if _, rest, ok := strings.Cut(page, `name="to" value="`); ok {
			to, _, _ = strings.Cut(rest, `"`)
		}
		to = html.UnescapeString(to)
		w = r.there("POST", "/login", "", url.Values{"token": {"nobody"}, "to": {to}})
		if w.Code != http.StatusUnauthorized || to != "" && !strings.Contains(w.Body.String(), html.EscapeString(to)) {
			t.Errorf("%s: a wrong token forgets it", asked)
		}
		if w = r.there("POST", "/login", "", url.Values{"token": {"kim"}, "to": {to}}); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%s: %d to %q, want %q", asked, w.Code, w.Header().Get("Location"), want)
		}
	}
	for _, to := range []string{"//evil.example/sessions", "https://evil.example/sessions", `/\evil.example`, `\\evil.example`, "javascript:alert(1)", "/login/x", "/static/console.css", "/logout", "/%2e%2e//evil.example", "/sessions/../login/x", "sessions", "/sessions\r\nX: y", "///evil.example", "/;@evil.example", "?x", "#x"} {
		if w := r.there("POST", "/login", "", url.Values{"token": {"kim"}, "to": {to}}); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" {
			t.Errorf("%q leads to %q", to, w.Header().Get("Location"))
		}
	}
}

// TestFormUnderWay: a form whose login ended before all of it was here does nothing (K05).
func TestFormUnderWay(t *testing.T) {
	r := newRig(t)
	r.bound = "ide/3"
	r.told("s_aaaaaaaaaaaaaaaa", "words")
	qs, _ := r.queue.Open()
	for name, end := range map[string]func(in *login){
		"signed out": r.Console.end, "idle": func(*login) { r.later(idle) }, "its client removed": func(*login) { r.register(nil) },
	} {
		r.register(map[string]writ.Label{"kim": writ.User})
		cookie, form := r.signed("kim")
		in := r.loggedInBy(cookie)
		body := url.Values{"form": {form}, "say": {"yes"}, "code": {"kim"}}.Encode()
		req := httptest.NewRequestWithContext(t.Context(), "POST", "https://"+public+"/approvals/"+qs[0].ID, io.MultiReader(strings.NewReader(body[:9]), &meanwhile{strings.NewReader(body[9:]), func() { end(in) }}))
		req.RequestURI = "/approvals/" + qs[0].ID
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.AddCookie(&http.Cookie{Name: "__Host-writ-console", Value: cookie})
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "nothing was done") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if _, answered := r.queue.Said(qs[0].ID); answered {
		t.Error("it was answered")
	}
}

// meanwhile is a reader before whose first byte something happens.
type meanwhile struct {
	io.Reader
	does func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	if m.does != nil {
		m.does()
		m.does = nil
	}
	return m.Reader.Read(p)
}

// TestCookieOfAPort: two consoles at two ports of one public host sign nobody out of the other.
func TestCookieOfAPort(t *testing.T) {
	r := newRig(t)
	for origin, want := range map[string]string{"writ.example.org": "__Host-writ-console", "writ.example.org:8443": "__Host-writ-console-8443"} {
		r.o.Public = origin
		if got := r.cookie(true); got != want {
			t.Errorf("%s: %s", origin, got)
		}
	}
}

// flushed says when a stream began.
type flushed struct {
	*httptest.ResponseRecorder
	first chan struct{}
	once  sync.Once
}

func (f *flushed) Write(b []byte) (int, error) {
	f.once.Do(func() { close(f.first) })
	return f.ResponseRecorder.Write(b)
}

// TestManySignedIn: the logins of a client take nobody else's place, and few tokens are looked at
// at a time.
func TestManySignedIn(t *testing.T) {
	r := newRig(t)
	r.register(map[string]writ.Label{"kim": writ.User, "ann": writ.Operator})
	near, _, _ := r.in()
	ann, _ := r.signed("ann")
	first, _ := r.signed("kim")
	r.later(time.Second)
	for range maxLogins {
		r.signed("kim")
	}
	if r.loggedInBy(near) == nil || r.loggedInBy(ann) == nil {
		t.Error("another's login lost its place")
	}
	if r.loggedInBy(first) != nil || len(r.logins) != maxLogins+2 {
		t.Errorf("%d logins", len(r.logins))
	}
	r.later(time.Second)
	for range maxLogins {
		r.in()
	}
	if r.loggedInBy(ann) == nil || r.loggedInBy(near) != nil || len(r.logins) != 2*maxLogins+1 {
		t.Errorf("%d logins", len(r.logins))
	}

	looking, look := make(chan struct{}), make(chan struct{})
	r.o.Client = func(string) (string, bool) {
		looking <- struct{}{}
		<-look
		return "", false
	}
	var all sync.WaitGroup
	for range maxSigning {
		all.Go(func() { r.there("POST", "/login", "", url.Values{"token": {"x"}}) })
	}
	for range maxSigning {
		<-looking
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel() // who does not wait for a place
	req := httptest.NewRequestWithContext(gone, "POST", "https://"+public+"/login", strings.NewReader("token=x"))
	req.RequestURI = "/login"
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("one more: %d", w.Code)
	}
	close(look)
	all.Wait()
}

// TestAnswersByToken: the first yes takes the token once more, an answer is worth what its client's
// is, and counts for nothing in that client's own session or at another gateway (K05, K06).
func TestAnswersByToken(t *testing.T) {
	r := newRig(t)
	r.register(map[string]writ.Label{"Kim/1": writ.User, "ann/2": writ.Operator})
	id := func(session string) string {
		r.told(session, "words")
		qs, _ := r.queue.Open()
		return qs[len(qs)-1].ID
	}
	say := func(cookie, form, id, say, code, want string) {
		t.Helper()
		w := r.there("POST", "/approvals/"+id, cookie, url.Values{"form": {form}, "say": {say}, "code": {code}})
		if w.Code == http.StatusSeeOther {
			w = r.there("GET", w.Header().Get("Location"), cookie, nil)
		}
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, w.Body)
		}
	}
	waits := func(want int) {
		t.Helper()
		if qs, _ := r.queue.Open(); len(qs) != want {
			t.Fatalf("%d questions wait, and not %d", len(qs), want)
		}
	}
	kim, form1 := r.signed("Kim/1")
	ann, form2 := r.signed("ann/2")
	r.bound = "ide/3"
	a := id("s_aaaaaaaaaaaaaaaa")
	page := r.there("GET", "/approvals", kim, nil).Body.String()
	if !strings.Contains(page, `name="code" type="password" autocomplete="off"`) || strings.Contains(page, "Code from the terminal") {
		t.Errorf("it asks for no token:\n%s", page)
	}
	code := r.Code()
	say(kim, form1, a, "yes", "", "Type the token: ")
	say(kim, form1, a, "yes", code, "That is not the token")    // it is a link's login's
	say(kim, form1, a, "yes", "ann/2", "That is not the token") // it is another client's
	say(kim, form1, a, "yes", "kim/1", "That is not the token")
	waits(1)

	// In the session of the client itself, neither a yes nor a no; nor in one that is anybody's.
	for _, r.bound = range []string{"", "none"} {
		say(ann, form2, id("s_whose"+strings.Repeat(r.bound+"x", 9)[:9]), "no", "", "cannot be told")
	}
	r.bound = "Kim/1"
	own := id("s_oooooooooooooooo")
	if page := r.there("GET", "/approvals", kim, nil).Body.String(); strings.Count(page, "Yes, this once") != 1 || !strings.Contains(page, "the client whose agent asks") {
		t.Errorf("it may be answered:\n%s", page)
	}
	say(kim, form1, own, "yes", "Kim/1", "the client whose agent asks")
	say(kim, form1, own, "no", "", "the client whose agent asks")
	waits(4)
	say(ann, form2, own, "no", "", "You said no to ")
	say(ann, form2, a, "no", "", "You said no to ") // another one's, which takes no token
	if got, _ := r.queue.Said(a); got.Yes || got.By != "ann/2" || got.Label != writ.Operator {
		t.Errorf("%+v", got)
	}
	r.bound = "ide/3"
	b := id("s_bbbbbbbbbbbbbbbb")
	say(kim, form1, b, "yes", " Kim/1 ", "You said yes to ")
	if got, _ := r.queue.Said(b); !got.Yes || got.By != "Kim/1" || got.Label != writ.User {
		t.Errorf("%+v", got)
	}
	say(ann, form2, b, "no", "", "Kim/1 answered first, with yes.")
	c := id("s_cccccccccccccccc")
	say(kim, form1, c, "yes", "", "You said yes to ") // not the first

	// At another gateway, which would put it on record as what the account's person said.
	r.o.Elsewhere = another{t}
	say(ann, form2, "other", "yes", "ann/2", "it is another one than serves this address")
	say(ann, form2, "nothing", "yes", "ann/2", "That question is gone")

	d := id("s_dddddddddddddddd")
	for range maxTries - 1 {
		say(ann, form2, d, "yes", "wrong", "That is not the token")
	}
	say(ann, form2, d, "yes", "wrong", "wrong too often")
	if w := r.there("GET", "/approvals", ann, nil); w.Code != http.StatusUnauthorized {
		t.Errorf("after too many tries: %d", w.Code)
	}
	r.register(nil)
	say(kim, form1, d, "yes", "", "nothing was done") // its client is no more
	waits(3)
}

// TestKeptByToken: "from now on" takes the token as a yes does, is refused in the client's own session,
// and is on record as the client's (K06).
func TestKeptByToken(t *testing.T) {
	r := newRig(t)
	r.register(map[string]writ.Label{"ann/2": writ.Operator})
	ann, form := r.signed("ann/2")
	keep := func(session, code string) (id, page string) {
		r.told(session, "words")
		qs, _ := r.queue.Open()
		id = qs[len(qs)-1].ID
		w := r.there("POST", "/approvals/"+id, ann, url.Values{"form": {form}, "say": {"keep"}, "keep": {"source"}, "code": {code}})
		return id, r.there("GET", w.Header().Get("Location"), ann, nil).Body.String()
	}
	r.bound = "ann/2"
	if id, page := keep("s_aaaaaaaaaaaaaaaa", "ann/2"); !strings.Contains(page, "the client whose agent asks") {
		t.Errorf("%s is kept in his own session:\n%s", id, page)
	}
	r.bound = "ide/3"
	for session, code := range map[string]string{"s_bbbbbbbbbbbbbbbb": "", "s_cccccccccccccccc": "Kim/1", "s_dddddddddddddddd": r.Code()} {
		if id, page := keep(session, code); !strings.Contains(page, "the one that you signed in with") {
			t.Errorf("%s is kept by %q:\n%s", id, code, page)
		}
	}
	if qs, _ := r.queue.Open(); len(qs) != 4 {
		t.Errorf("%d questions wait", len(qs))
	}
	id, page := keep("s_eeeeeeeeeeeeeeee", "ann/2")
	if got, _ := r.queue.Said(id); !strings.Contains(page, "from now on. It is on record") || !got.Yes || got.By != "ann/2" || got.Keep != approval.KeepSource || got.Label != writ.Operator {
		t.Errorf("%+v\n%s", got, page)
	}
}

// another is a gateway whose question is not answered from here.
type another struct{ t *testing.T }

func (another) Open(context.Context, bool) []approval.Shown {
	return []approval.Shown{{Question: approval.Question{ID: "other", Until: time.Now().Add(time.Hour)}}}
}
func (a another) There() func() {
	a.t.Error("it is watched from here")
	return func() {}
}
func (another) Said(string) (approval.Answer, bool) { return approval.Answer{}, false }
func (a another) Reply(context.Context, string, approval.Answer) (int, approval.Reply) {
	a.t.Error("it was sent there")
	return 0, approval.Reply{}
}
