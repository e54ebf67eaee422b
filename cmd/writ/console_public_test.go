//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/writ-project/writ/internal/example"
)

const publicHost = "writ.example.org"

// public starts writ serve with a public origin, and a proxy in front of it that has TLS. mcp is
// where the gateway listens.
func public(t *testing.T, state string) (mcp string, proxy *httptest.Server, end func() string) {
	t.Helper()
	config := approving(t, example.Policy())
	b, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, append(b, "console: { origin: https://"+publicHost+" }\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	mcp, end = serving(t, "--state", state, "--config", config)
	to, err := url.Parse(strings.TrimSuffix(mcp, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	proxy = httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	return mcp, proxy, end
}

// visitor is a browser without a script that finds the public host at the proxy: it asks for a page,
// or sends a form, and returns what came.
func visitor(t *testing.T, proxy *httptest.Server) func(path string, form url.Values) (resp *http.Response, page string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", proxy.Listener.Addr().String())
		}}}
	t.Cleanup(client.CloseIdleConnections)
	return func(path string, form url.Values) (*http.Response, string) {
		t.Helper()
		method := "GET"
		if form != nil {
			method = "POST"
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+publicHost+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if form != nil {
			req.Header.Set("Origin", "https://"+publicHost)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(b)
	}
}

// asksAs makes a call that needs a person, as an agent with that token and in a session of its own,
// and returns what came of it.
func asksAs(ctx context.Context, mcp, token, document string) (answer string, err error) {
	session := ""
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"delete_document","arguments":{"id":"` + document + `"}}}`,
	} {
		req, err := http.NewRequestWithContext(ctx, "POST", mcp, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+token)
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return "", err
		}
		session, answer = resp.Header.Get("Mcp-Session-Id"), string(b)
	}
	return answer, nil
}

// answers sends what a visitor says to the question about a document, and returns the page that says
// what became of it.
func answers(t *testing.T, ask func(string, url.Values) (*http.Response, string), document, word, token string) string {
	t.Helper()
	_, page := ask("/approvals", nil)
	id := ""
	for _, card := range strings.Split(page, "<article ")[1:] {
		if strings.Contains(card, document) {
			id = found(t, `id="q-([a-z0-9]+)"`, card)
		}
	}
	resp, page := ask("/approvals/"+id, url.Values{"form": {found(t, `name="form" value="([^"]+)"`, page)}, "say": {word}, "code": {token}})
	if to := resp.Header.Get("Location"); to != "" {
		_, page = ask(to, nil)
	}
	return page
}

// sent sends bytes as they are, and returns all that is answered.
func sent(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(c) // it may be reset, where not all was read
	return string(b)
}

// mcpHeader is what stands before a message of MCP, with the empty line.
func mcpHeader(message string) string {
	return fmt.Sprintf("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n", len(message))
}

// TestConsolePublic: through a proxy that has TLS the console is reached at its public host, and
// nothing else of the gateway. A person's token lets in there, his answers are on record as his
// client's, and end with it (K06, K08, S01).
func TestConsolePublic(t *testing.T) {
	state := ownState(t)
	at := []string{"--state", state}
	tokens := map[string]string{}
	for name, role := range map[string]string{"kim": "person", "ann": "operator", "bot": "agent"} {
		tokens[name] = command(t, append([]string{"client", "add", name, "--role", role}, at...)...)
	}
	mcp, proxy, end := public(t, state)
	ask := visitor(t, proxy)

	// Host by host, route by route.
	near := strings.TrimSuffix(mcp, "/mcp")
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	knock := func(host, method, path, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, near+path, nil)
		if method == "POST" {
			req, err = http.NewRequestWithContext(t.Context(), method, near+path, strings.NewReader(hello))
		}
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for _, path := range []string{"/mcp", "/mcp/", "/mcp/s/x", "//mcp", "/./mcp", "/MCP", "/%6dcp", "/metrics", "/healthz", "/readyz", "/approvals", "/approvals/x", "/console", "/console?code", "/say", "/hook", "/status", "/settle", "/closed", "/reload", "/login", "/", "/nothing"} {
		for _, method := range []string{"GET", "POST"} {
			// What is no page leads, cleaned, to one of the console's, or to how one gets in.
			if code, body := knock(publicHost, method, path, ""); code != http.StatusUnauthorized && code/100 != 3 || code == http.StatusUnauthorized && !strings.Contains(body, `action="/login"`) {
				t.Errorf("%s %s: %d %s", method, path, code, body)
			}
			for _, token := range []string{tokens["ann"], tokens["bot"], "x"} {
				if code, body := knock(publicHost, method, path, token); code != http.StatusForbidden || !strings.Contains(body, "<!doctype html>") {
					t.Errorf("%s %s with a token: %d %s", method, path, code, body)
				}
			}
			for _, host := range []string{strings.ToUpper(publicHost), publicHost + ":443", publicHost + ".", "x." + publicHost, "evil.example"} {
				if code, body := knock(host, method, path, ""); code/100 == 2 && path != "/healthz" && path != "/readyz" || strings.Contains(body, `action="/login"`) {
					t.Errorf("%s %s of %s: %d %s", method, path, host, code, body)
				}
			}
		}
	}
	local := strings.TrimPrefix(near, "http://")
	// What a proxy passes on by another name reaches nothing, and is told so (S01).
	for _, by := range []string{"Forwarded: for=192.0.2.1", "Via: 1.1 proxy", "X-Real-IP: 192.0.2.1", "X-Forwarded-For: 192.0.2.1", "x-forwarded-host: 127.0.0.1", "X-Forwarded-Proto: https", ""} {
		version := "1.1"
		if by == "" {
			by, version = "X: y", "1.0"
		}
		for _, path := range []string{"/mcp", "/"} {
			if said := sent(t, local, "POST "+path+" HTTP/"+version+"\r\nHost: "+local+"\r\nConnection: close\r\n"+by+"\r\n"+mcpHeader(hello)+hello); !strings.HasPrefix(said, "HTTP/"+version+" 403 ") || !strings.Contains(said, "console.origin") {
				t.Errorf("%s by HTTP/%s with %s: %s", path, version, by, said)
			}
			if said := sent(t, local, "GET "+path+" HTTP/"+version+"\r\nHost: "+publicHost+"\r\nConnection: close\r\n"+by+"\r\n\r\n"); !strings.Contains(said, `action="/login"`) {
				t.Errorf("%s there by HTTP/%s with %s: %s", path, version, by, said)
			}
		}
	}
	// Nor does what a proxy took for the end of a body (W12).
	inner := "POST /mcp HTTP/1.1\r\nHost: " + local + "\r\n" + mcpHeader(hello) + hello
	for _, path := range []string{"/login", "/", "/static/console.css"} {
		said := sent(t, local, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", path, publicHost, 5+len(inner), inner))
		if strings.Count(said, "HTTP/1.1 ") != 1 || !strings.Contains(said, "Connection: close") || strings.Contains(said, "serverInfo") {
			t.Errorf("a request within the body of another, to %s: %s", path, said)
		}
	}
	if code, body := knock(local, "GET", "/healthz", ""); code != 200 || body != "ok\n" {
		t.Errorf("health, here: %d %s", code, body)
	}
	if code, body := knock(local, "POST", "/mcp", ""); code != 200 || !strings.Contains(body, "serverInfo") {
		t.Errorf("MCP, here: %d %s", code, body)
	}
	if code, body := knock(local, "POST", "/mcp", tokens["ann"]); code != 200 {
		t.Errorf("MCP with a token, here: %d %s", code, body)
	}

	// An agent's token is nobody's.
	_, page := ask("/", nil)
	if !strings.Contains(page, `name="token" type="password"`) {
		t.Fatalf("no field for the token:\n%s", page)
	}
	resp, agents := ask("/login", url.Values{"token": {tokens["bot"]}})
	if resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) > 0 {
		t.Errorf("an agent's token: %s", resp.Status)
	}
	if _, unknown := ask("/login", url.Values{"token": {"writ_" + strings.Repeat("A", 43)}}); unknown != agents {
		t.Errorf("it differs from one that is nobody's:\n%s\n%s", agents, unknown)
	}
	resp, _ = ask("/login", url.Values{"token": {tokens["kim"]}})
	if got := resp.Header.Get("Set-Cookie"); resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got, "__Host-writ-console=") || !strings.HasSuffix(got, "; Path=/; HttpOnly; Secure; SameSite=Strict") {
		t.Fatalf("kim's: %s %s", resp.Status, got)
	}

	// Kim answers the agent, and not the client that has his own token.
	for name, document := range map[string]string{"bot": "doc-2b8e04", "kim": "doc-7f3a19"} {
		if answer, err := asksAs(t.Context(), mcp, tokens[name], document); err != nil || !strings.Contains(answer, "approval.pending") {
			t.Fatalf("the call of %s: %s %v", name, answer, err)
		}
	}
	say := func(document, word, token, want string) {
		t.Helper()
		if page := answers(t, ask, document, word, token); !strings.Contains(page, want) {
			t.Errorf("%s to %s: it does not say %q:\n%s", word, document, want, page)
		}
	}
	say("doc-7f3a19", "yes", tokens["kim"], "you signed in with the token of the client whose agent asks")
	say("doc-2b8e04", "yes", "", "Type the token: ")
	say("doc-2b8e04", "yes", tokens["ann"], "That is not the token")
	say("doc-2b8e04", "yes", tokens["kim"], "It is on record.")
	ask("/login", url.Values{"token": {tokens["ann"]}}) // in the place of kim's, whose cookie it takes
	say("doc-7f3a19", "no", "", "It is on record.")

	// Removed, and registered again.
	resp, _ = ask("/", nil)
	command(t, append([]string{"client", "remove", "ann"}, at...)...)
	command(t, append([]string{"client", "add", "ann", "--role", "operator"}, at...)...)
	if gone, _ := ask("/", nil); resp.StatusCode != 200 || gone.StatusCode != http.StatusUnauthorized {
		t.Errorf("%s, and when the client was removed: %s", resp.Status, gone.Status)
	}
	said, log := end(), ""
	st, err := openForReading(state)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for item, err := range st.Log(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		log += string(item.Leaf) + "\n"
	}
	for _, want := range []string{`"by":"client:kim/[0-9a-f]{8}","covers":.*,"label":"user","yes":true`, `"by":"client:ann/[0-9a-f]{8}","covers":.*,"label":"operator","yes":false`} {
		found(t, "("+want+")", log)
	}
	for _, token := range tokens {
		if strings.Contains(said+log, token) {
			t.Errorf("a token is in the log: %s", said)
		}
	}
	if !strings.Contains(said, "the console is at https://"+publicHost+" too") || !strings.Contains(said, "client=bot") {
		t.Errorf("it says: %s", said)
	}
}

// TestConsolePublicBrowser: the same in a browser, with the stream of events through the proxy.
func TestConsolePublicBrowser(t *testing.T) {
	state := ownState(t)
	at := []string{"--state", state}
	kim := command(t, append([]string{"client", "add", "kim", "--role", "person"}, at...)...)
	bot := command(t, append([]string{"client", "add", "bot", "--role", "agent"}, at...)...)
	ann := command(t, append([]string{"client", "add", "ann", "--role", "operator"}, at...)...)
	mcp, proxy, _ := public(t, state)
	b := newBrowser(t, chromedp.Flag("ignore-certificate-errors", true), chromedp.Flag("host-resolver-rules", "MAP "+publicHost+" "+proxy.Listener.Addr().String()))
	site := "https://" + publicHost
	b.do(chromedp.Navigate(site + "/approvals"))
	b.says("The token that writ client add NAME --role person or operator printed")
	b.looks("sign-in")
	b.do(chromedp.SetValue(chromedp.CSS("#token"), bot), chromedp.Submit(chromedp.CSS("#token")))
	b.says("That lets nobody in.")
	b.do(chromedp.SetValue(chromedp.CSS("#token"), kim), chromedp.Submit(chromedp.CSS("#token")))
	b.says("Live")
	b.says("client:kim/")
	if eval[string](b, "document.cookie") != "" {
		t.Error("a script of the page can read the cookie")
	}
	b.do(chromedp.Navigate(site + "/approvals"))
	b.until(`document.querySelector("#stream.follows") !== null`)
	came := make(chan string)
	go func() { // it is held, because somebody watches
		answer, err := asksAs(t.Context(), mcp, bot, "doc-2b8e04")
		came <- fmt.Sprint(answer, err)
	}()
	b.says("May the agent do this?")
	b.alive()
	b.do(chromedp.Click(chromedp.CSS(".card button.yes")))
	b.says("Type the token: ")
	b.alive()
	b.looks("by-token")
	b.do(chromedp.SetValue(chromedp.CSS(".card input[name=code]"), kim), chromedp.Click(chromedp.CSS(".card button.yes")))
	b.says("It is on record.")
	if got := <-came; !strings.Contains(got, `"deleted"`) {
		t.Errorf("the call: %s", got)
	}

	// The card of a question that he may not answer goes as any other.
	b.until(`document.querySelector("#stream.follows") !== null`) // the page that came with the answer
	go func() {
		answer, err := asksAs(t.Context(), mcp, kim, "doc-7f3a19")
		came <- fmt.Sprint(answer, err)
	}()
	b.says("you signed in with the token of the client whose agent asks")
	b.look("not-his")
	ask := visitor(t, proxy)
	ask("/login", url.Values{"token": {ann}})
	if page := answers(t, ask, "doc-7f3a19", "no", ""); !strings.Contains(page, "It is on record.") {
		t.Errorf("another's answer: %s", page)
	}
	if got := <-came; !strings.Contains(got, "approval.refused") {
		t.Errorf("the call: %s", got)
	}
	b.says("said no.")
	command(t, append([]string{"client", "remove", "kim"}, at...)...)
	b.until(`document.querySelector("#stream.lost") !== null`)
	b.do(chromedp.Navigate(site + "/"))
	b.says("The token that writ client add NAME")
}
