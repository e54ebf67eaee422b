package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Options say how somebody signs in.
type Options struct {
	// Client is the id that the authorization server gave beforehand, with its Secret;
	// "" registers one there (RFC 7591).
	Client, Secret string
	// Port is where the browser comes back to on 127.0.0.1, 0 for any.
	Port int
	// Visit is told the page to sign in at, once: an https URL, or, of a server of this
	// machine, one of this machine.
	Visit func(page string)
}

// ErrOpen says that a server takes requests without a login.
var ErrOpen = errors.New("the server wants no login")

// errAway says that somebody did not sign in: what the browser came back with.
type errAway struct{ why string }

func (e errAway) Error() string { return e.why }

// Login signs a person in to a server at a URL, and keeps what came of it. It waits at
// the page to come back to until the context ends.
func (s *Store) Login(ctx context.Context, server, at string, o Options) error {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" && !here(u.Hostname()) {
		return errors.New("a token goes over https, or to this machine")
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(o.Port)))
	if err != nil {
		return errors.New("the page to come back to cannot be served")
	}
	defer l.Close()
	back := "http://" + l.Addr().String() + "/callback"
	var g *grant
	cfg := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back, Client: client(at), RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return visit(ctx, l, args.URL, here(u.Hostname()), o.Visit)
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			if !strings.EqualFold(t.Type(), "bearer") {
				return nil, errors.New("the token is none that a request can bear")
			}
			g = (grant{Client: c.ClientID, Secret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, Style: c.Endpoint.AuthStyle, Scopes: c.Scopes}).taken(t)
			return oauth2.StaticTokenSource(t), nil
		},
	}
	if o.Client != "" {
		cfg.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.Client}
		if o.Secret != "" {
			cfg.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.Secret}
		}
	} else {
		cfg.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Writ", RedirectURIs: []string{back}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	h, err := auth.NewAuthorizationCodeHandler(cfg)
	if err != nil {
		return errors.New("the sign-in cannot be set up")
	}
	req, resp, err := knock(ctx, cfg.Client, at)
	if err != nil {
		return err
	}
	if err := h.Authorize(ctx, req, resp); err != nil {
		return told(ctx, err)
	}
	if g == nil {
		return errors.New("the server refuses without asking for a login")
	}
	return s.put(server, at, g)
}

// told is an error of the SDK in words of ours: its own may hold what the server sent.
func told(ctx context.Context, err error) error {
	away, ok := errors.AsType[errAway](err)
	switch {
	case ctx.Err() != nil:
		return errors.New("nobody signed in in time")
	case ok:
		return away
	case strings.HasPrefix(err.Error(), "no configured client registration"):
		return errors.New("the authorization server registers no clients by itself; it has to give you a client id")
	case strings.HasPrefix(err.Error(), "failed to register client"):
		return errors.New("the authorization server did not register Writ as a client")
	case strings.HasPrefix(err.Error(), "token exchange failed"):
		return errors.New("the authorization server gave no token for the sign-in")
	}
	return errors.New("what the server says of its authorization server cannot be read or used")
}

// knock makes the request that a server which wants a login refuses.
func knock(ctx context.Context, c *http.Client, at string) (*http.Request, *http.Response, error) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"writ","version":"login"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(hello))
	if err != nil {
		return nil, nil, errors.New("the request could not be built")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, errors.New("the server cannot be reached")
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return req, resp, nil
	}
	resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return nil, nil, ErrOpen
	}
	return nil, nil, fmt.Errorf("the server answered HTTP %d", resp.StatusCode)
}

// visit sends the person to a page and waits for the browser to come back. local says that
// the server is on this machine: no other names a page of this machine's, where his browser
// may be somebody to whatever listens.
func visit(ctx context.Context, l net.Listener, page string, local bool, show func(string)) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(page)
	// What is no URL to a browser is none to a person, who is shown its host.
	foreign := func(r rune) bool { return r <= ' ' || r > '~' }
	if err != nil || u.User != nil || strings.ContainsFunc(u.Host, foreign) || here(u.Hostname()) && !local || u.Scheme != "https" && !(u.Scheme == "http" && here(u.Hostname())) {
		return nil, errAway{"the page to sign in at is no https page"}
	}
	state := u.Query().Get("state")
	type end struct {
		r   *auth.AuthorizationResult
		err error
	}
	came := make(chan end, 1)
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer")
		q := r.URL.Query()
		// Any page can send a browser here: only who knows the state ends the wait.
		if r.Method != http.MethodGet || r.URL.Path != "/callback" || r.Host != l.Addr().String() || q.Get("state") != state {
			http.Error(w, "This is not the page you signed in from.", http.StatusNotFound)
			return
		}
		e := end{r: &auth.AuthorizationResult{Code: q.Get("code"), State: state, Iss: q.Get("iss")}}
		if q.Get("code") == "" {
			e = end{err: errAway{"the authorization server sent the browser back without a login"}}
		}
		select {
		case came <- e:
			if e.err != nil {
				io.WriteString(w, "There was no sign-in. You can close this page; the terminal says more.\n")
			} else {
				io.WriteString(w, "You have signed in. You can close this page; the terminal says what came of it.\n")
			}
		default:
			http.Error(w, "Somebody has come back already.", http.StatusGone)
		}
	})}
	go srv.Serve(l)
	defer func() {
		// The page is shown before the listener goes.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		srv.Shutdown(ctx)
		cancel()
	}()
	show(u.String())
	select {
	case e := <-came:
		return e.r, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// client asks for metadata, registers, and takes tokens. The addresses are judged where
// they are dialled, so that no name leads elsewhere the second time.
func client(at string) *http.Client {
	u, _ := url.Parse(at)
	own := u.Host
	local := here(u.Hostname())
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			d := &net.Dialer{Timeout: 10 * time.Second}
			if host, port, err := net.SplitHostPort(addr); err == nil && !same(own, u.Scheme, host, port) {
				d.ControlContext = func(_ context.Context, _, to string, _ syscall.RawConn) error {
					if a, err := netip.ParseAddrPort(to); local && err == nil && a.Addr().Unmap().IsLoopback() {
						return nil // a server of this machine signs in on this machine
					}
					return public(to)
				}
			}
			return d.DialContext(ctx, network, addr)
		},
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
	}
	return &http.Client{Transport: t, Timeout: 30 * time.Second, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if last := via[len(via)-1].URL; len(via) > 5 || req.URL.Host != last.Host || req.URL.Scheme != last.Scheme {
			return errors.New("a redirect to another host")
		}
		return nil
	}}
}

// same reports whether an address to dial is that of the operator's own URL.
func same(own, scheme, host, port string) bool {
	if h, p, err := net.SplitHostPort(own); err == nil {
		return strings.EqualFold(h, host) && p == port
	}
	return strings.EqualFold(strings.Trim(own, "[]"), host) && port == map[string]string{"http": "80", "https": "443"}[scheme]
}

// public refuses addresses that are not of the open internet.
func public(addr string) error {
	a, err := netip.ParseAddrPort(addr)
	ip := a.Addr().Unmap()
	if err == nil && (!ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip) })) {
		err = errors.New("the address is not public")
	}
	return err
}

// reserved are blocks that netip does not tell from public ones: of carriers, of
// protocols, of tests, and those that carry IPv4 addresses in them (RFC 6890).
var reserved = func() (out []netip.Prefix) {
	for _, p := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16"} {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}()

// here reports whether a host is this machine.
func here(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
