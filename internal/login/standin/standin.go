// Package standin is a hosted server that wants a login, for tests: its authorization
// server registers clients, holds them to PKCE and to the resource they asked for, and
// takes each code and refresh token once. It is linked into nothing that people run.
package standin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Hosted is a server at /mcp that wants a login, with its authorization server beside it.
type Hosted struct {
	t *testing.T
	*httptest.Server

	mu        sync.Mutex
	clients   map[string]string     // redirect URI of each that registered
	codes     map[string]url.Values // what a code was asked for with
	refresh   map[string]bool       // tokens that may be used, once
	good      map[string]bool       // access tokens
	Lifetime  int                   // of an access token, in seconds
	Renewals  int                   // tokens that were renewed
	NoClients bool                  // it registers none
	Spoof     string                // what it names as its authorization server
}

// New starts one on loopback, which ends with the test. Whoever is signed in is answered by
// inside.
func New(t *testing.T, inside http.Handler) *Hosted {
	h := &Hosted{t: t, clients: map[string]string{}, codes: map[string]url.Values{}, refresh: map[string]bool{}, good: map[string]bool{}, Lifetime: 3600}
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		h.mu.Lock()
		good := h.good[token]
		h.mu.Unlock()
		if good {
			inside.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+h.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(401)
	})
	mux.HandleFunc("/open", func(w http.ResponseWriter, r *http.Request) { say(w, 200, map[string]any{}) })
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		as := h.URL
		if h.Spoof != "" {
			as = h.Spoof
		}
		say(w, 200, map[string]any{"resource": h.URL + "/mcp", "authorization_servers": []string{as}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		meta := map[string]any{"issuer": h.URL, "authorization_endpoint": h.URL + "/authorize", "token_endpoint": h.URL + "/token",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "grant_types_supported": []string{"authorization_code", "refresh_token"}}
		if !h.NoClients {
			meta["registration_endpoint"] = h.URL + "/register"
		}
		say(w, 200, meta)
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			URIs []string `json:"redirect_uris"`
		}
		json.NewDecoder(r.Body).Decode(&m)
		h.mu.Lock()
		defer h.mu.Unlock()
		id := fmt.Sprintf("client-%d", len(h.clients)+1)
		h.clients[id] = m.URIs[0]
		say(w, 201, map[string]any{"client_id": id, "redirect_uris": m.URIs, "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		h.mu.Lock()
		defer h.mu.Unlock()
		n := len(h.good) + 1
		switch f := r.PostForm; f.Get("grant_type") {
		case "authorization_code":
			asked := h.codes[f.Get("code")]
			sum := sha256.Sum256([]byte(f.Get("code_verifier")))
			if asked == nil || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || f.Get("resource") != h.URL+"/mcp" || asked.Get("client_id") != f.Get("client_id") {
				say(w, 400, map[string]any{"error": "invalid_grant"})
				return
			}
			delete(h.codes, f.Get("code"))
		case "refresh_token":
			if !h.refresh[f.Get("refresh_token")] {
				say(w, 400, map[string]any{"error": "invalid_grant"})
				return
			}
			delete(h.refresh, f.Get("refresh_token"))
			h.Renewals++
		}
		access, refresh := fmt.Sprintf("access-%d", n), fmt.Sprintf("refresh-%d", n)
		h.good[access], h.refresh[refresh] = true, true
		say(w, 200, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": h.Lifetime, "refresh_token": refresh})
	})
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

// Browser signs in at a page as a person would, and comes back with what alter makes of it.
func (h *Hosted) Browser(page string, alter func(back url.Values)) (status int) {
	u, err := url.Parse(page)
	if err != nil || !strings.HasPrefix(page, h.URL+"/authorize?") {
		h.t.Errorf("sent to %q", page)
		return 0
	}
	q := u.Query()
	back, _ := url.Parse(q.Get("redirect_uri"))
	if q.Get("code_challenge_method") != "S256" || back.Hostname() != "127.0.0.1" {
		h.t.Errorf("asked with %v", q)
	}
	v := url.Values{"code": {"code-1"}, "state": {q.Get("state")}}
	h.mu.Lock()
	h.codes["code-1"] = q
	h.mu.Unlock()
	if alter != nil {
		alter(v)
	}
	back.RawQuery = v.Encode()
	resp, err := http.Get(back.String())
	if err != nil {
		h.t.Error(err)
		return 0
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

// Forget makes every token that was given worth nothing.
func (h *Hosted) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.good, h.refresh = map[string]bool{}, map[string]bool{}
}
