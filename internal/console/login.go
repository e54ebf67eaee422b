package console

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/approval"
)

// The times of a login.
const (
	linkStands = 60 * time.Second
	codeStands = 5 * time.Minute
	idle       = time.Hour
	atMost     = 12 * time.Hour
)

const (
	maxLinks   = 16
	maxLogins  = 32      // by links, and by the token of each client
	maxTries   = 5       // at the code or the token, of one login
	maxSigning = 4       // looks at a token at a time
	maxSign    = 8 << 10 // bytes of a form that signs in
	maxTo      = 2000    // of the page to go on at
)

// key is the digest of what a person or a browser holds: the console keeps nothing that
// could be shown to it.
type key [sha256.Size]byte

func keyOf(secret string) key { return sha256.Sum256([]byte(secret)) }

type link struct {
	until time.Time
	code  string // that goes with it: printed beside it
}

// login is one browser that a person brought in.
type login struct {
	form        string // the token of its forms
	client      string // the principal whose token let it in at the public address, "" for a link
	token       key    // that token's
	since, last time.Time
	code        string // that its first yes takes, of a link
	tries       int
	confirmed   bool // the code, or the token, was given
	ended       chan struct{}
	flashes     []flash // what pages are to say of answers, the newest last
	replay      *replay // the last of its own, nil for none
}

// code is one that was shown at a terminal after a login.
type code struct {
	text  string
	until time.Time
}

// secret is 256 random bits.
func secret() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Link makes a link that lets one browser in, once, within a minute, and the code that this
// login's first yes takes. Both are for a person's terminal and for nothing else.
func (c *Console) Link() (url, code string) {
	s, now := secret(), c.o.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, l := range c.links {
		if !now.Before(l.until) || len(c.links) >= maxLinks {
			delete(c.links, k)
		}
	}
	code = approval.NewID()
	c.links[keyOf(s)] = link{now.Add(linkStands), code}
	return "http://" + c.o.Host + "/login/" + s, code
}

// Code makes a code for the first yes of whichever login gives it, once, within five
// minutes. It takes the place of the one before.
func (c *Console) Code() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code = code{approval.NewID(), c.o.Clock().Add(codeStands)}
	return c.code.text
}

// IsPublic reports whether a request names the public host.
func (c *Console) IsPublic(r *http.Request) bool { return c.o.Public != "" && r.Host == c.o.Public }

// by is who answers in a login.
func (c *Console) by(in *login) string { return cmp.Or(in.client, c.o.By) }

// removed reports whether the client is registered no more whose token let a login in.
func (c *Console) removed(in *login) bool {
	if in.client == "" {
		return false
	}
	_, ok := c.o.Worth(in.client)
	return !ok
}

// cookie is its name: of this port, for two consoles of one host have one jar.
func (c *Console) cookie(public bool) string {
	name, host := "writ-console", c.o.Host
	if public {
		name, host = "__Host-writ-console", c.o.Public
	}
	if _, port, stated := strings.Cut(host, ":"); stated {
		name += "-" + port
	}
	return name
}

// enter lets in who has a link. What only looks ahead at it does not use it up.
func (c *Console) enter(x *request) error {
	if x.Header.Get("Sec-Purpose") != "" || x.Host != c.o.Host {
		return errElsewhere
	}
	now, at := c.o.Clock(), keyOf(x.PathValue("key"))
	c.mu.Lock()
	l, known := c.links[at]
	delete(c.links, at)
	c.mu.Unlock()
	if !known || !now.Before(l.until) {
		c.out(x, "That link was used already, or is older than a minute.")
		return nil
	}
	return c.begin(x, &login{code: l.code}, "/")
}

// sign lets in who has the token of a client that is a person's. Whatever else is sent has one
// answer, which says nothing of why.
func (c *Console) sign(x *request) error {
	if !c.IsPublic(x.Request) {
		return errElsewhere
	}
	token := ""
	x.Body = http.MaxBytesReader(x.w, x.Body, maxSign)
	if x.ParseForm() == nil && x.URL.RawQuery == "" && len(x.PostForm["token"]) == 1 {
		token = strings.TrimSpace(x.PostForm.Get("token"))
	}
	var client string
	var ok bool
	err := c.signing.during(func(*request) error {
		client, ok = c.o.Client(token)
		return nil
	})(x)
	if err != nil {
		return err
	}
	if !ok {
		return c.show(x, http.StatusUnauthorized, "login.html", "Sign in", door{"That lets nobody in.", c.page(x.PostForm.Get("to"))})
	}
	return c.begin(x, &login{client: client, token: keyOf(token)}, c.page(x.PostForm.Get("to")))
}

// door is what the page shows where nobody is logged in: what is to be said, and the page that
// was asked for, where a token leads to.
type door struct{ Why, To string }

// page is an address of the console as one on this host, "" where it leads nowhere here: to
// another site, say, or to what anybody may ask for.
func (c *Console) page(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || !path.IsAbs(u.Path) || u.Path != path.Clean(u.Path) {
		return ""
	}
	q := u.Query()
	q.Del("again")
	u = &url.URL{Path: u.Path, RawQuery: q.Encode()}
	_, pattern := c.mux.Handler(&http.Request{Method: http.MethodGet, URL: u})
	if pattern == "GET /events" || len(u.String()) > maxTo || !slices.ContainsFunc(c.routes(), func(r route) bool { return r.pattern == pattern && !r.open && strings.HasPrefix(pattern, "GET ") }) {
		return ""
	}
	return u.String()
}

// begin begins a login, in the place of the one of the same origin that has not been seen for
// longest where there are too many, and leads its browser to a page, "" for the first.
func (c *Console) begin(x *request, in *login, to string) error {
	s, now := secret(), c.o.Clock()
	in.form, in.since, in.last, in.ended = secret(), now, now, make(chan struct{})
	c.mu.Lock()
	var oldest key
	n := 0
	for k, other := range c.logins {
		if other.client != in.client {
			continue
		}
		if o := c.logins[oldest]; o == nil || other.last.Before(o.last) {
			oldest = k
		}
		n++
	}
	if n >= maxLogins {
		c.drop(oldest)
	}
	c.logins[keyOf(s)] = in
	c.mu.Unlock()
	c.setCookie(x, s, 0)
	return x.leadTo(cmp.Or(to, "/"))
}

func (c *Console) setCookie(x *request, value string, age int) {
	public := c.IsPublic(x.Request)
	http.SetCookie(x.w, &http.Cookie{Name: c.cookie(public), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: public, SameSite: http.SameSiteStrictMode})
}

// loggedIn returns the login of a request, nil for none. seen says that a person asked, and
// not a page that is merely open.
func (c *Console) loggedIn(r *http.Request, seen bool) *login {
	public := c.IsPublic(r)
	cookie, err := r.Cookie(c.cookie(public))
	if err != nil || !public && r.Host != c.o.Host {
		return nil
	}
	now, at := c.o.Clock(), keyOf(cookie.Value)
	c.mu.Lock()
	in := c.logins[at]
	c.mu.Unlock()
	if in == nil || (in.client != "") != public {
		return nil
	}
	if c.removed(in) {
		c.end(in)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logins[at] != in || now.Sub(in.last) >= idle || now.Sub(in.since) >= atMost {
		c.drop(at)
		return nil
	}
	if seen {
		in.last = now
	}
	return in
}

// over reports whether a login ended meanwhile.
func (c *Console) over(in *login) bool {
	if c.removed(in) {
		c.end(in)
	}
	now := c.o.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-in.ended:
		return true
	default:
		return now.Sub(in.last) >= idle || now.Sub(in.since) >= atMost
	}
}

// drop ends a login. The caller holds mu.
func (c *Console) drop(at key) {
	if in := c.logins[at]; in != nil {
		close(in.ended)
		delete(c.logins, at)
	}
}

// end ends a login, whichever its cookie is.
func (c *Console) end(in *login) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, l := range c.logins {
		if l == in {
			c.drop(at)
		}
	}
}

func (c *Console) leave(x *request) error {
	c.end(x.login)
	x.login = nil
	c.setCookie(x, "", -1)
	return c.show(x, http.StatusOK, "login.html", "Signed out", door{Why: "You are signed out."})
}

// out is what everybody sees who is not logged in.
func (c *Console) out(x *request, why string) {
	x.login = nil
	if why == "" && x.Method == http.MethodPost {
		why = "You were signed out meanwhile, and nothing was done."
	}
	to := ""
	if x.Method == http.MethodGet {
		to = c.page(x.URL.RequestURI())
	}
	c.show(x, http.StatusUnauthorized, "login.html", "Sign in", door{why, to})
}

// confirm reports whether a login may say yes: it gave its code, or of a client the token, once,
// or gives it now. Who cannot, ends with his last try.
func (c *Console) confirm(in *login, given string) (ok, over bool) {
	given = strings.TrimSpace(given)
	is := func(code string) bool {
		return in.client == "" && code != "" && subtle.ConstantTimeCompare([]byte(strings.ToLower(given)), []byte(code)) == 1
	}
	now := c.o.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case in.confirmed:
		return true, false
	case in.client != "" && keyOf(given) == in.token:
	case is(in.code):
	case is(c.code.text) && now.Before(c.code.until):
		c.code = code{}
	default:
		if given != "" {
			in.tries++
		}
		return false, in.tries >= maxTries
	}
	in.confirmed, in.code = true, ""
	return true, false
}
