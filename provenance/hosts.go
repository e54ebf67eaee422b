package provenance

import (
	"net/url"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// Hosts returns the hosts of a text, of links and by themselves, each once, in small letters
// and with a port that is not its scheme's. What may be the name of a file as well is one
// ("claude.ai").
func Hosts(s string) (out []string) {
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return blank(r) || isMark(r) || r == ',' || r == ';' }) {
		if host, is := hostOf(strings.ToLower(strings.TrimRight(w, stops))); is && !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	return out
}

// hostOf is the host of a word in small letters.
func hostOf(w string) (host string, is bool) {
	if !strings.Contains(w, "://") {
		host = w
		if i := strings.IndexAny(w, "/?#:"); i >= 0 {
			host = w[:i]
		}
		if _, _, is := bareHost(strictjson.StringOf("https://" + host)); !is && host != "localhost" && !address().MatchString(host) {
			return "", false
		}
		w = "https://" + w
	}
	u, err := url.Parse(w)
	if err != nil || u.Hostname() == "" {
		return "", false
	}
	host = strings.TrimRight(u.Hostname(), ".")
	if p := u.Port(); p != "" && !(p == "443" && u.Scheme == "https" || p == "80" && u.Scheme == "http") {
		host += ":" + p
	}
	return host, true
}

var address = text.Pattern(`^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$`)

// Hosts returns the hosts that the user typed, in one turn or, of turn 0, in any.
func (l *Ledger) Hosts(turn uint32) (out []string) {
	for i := range l.turns {
		if turn == 0 || l.turns[i].Evidence == turn {
			out = append(out, Hosts(l.turns[i].own.text)...)
		}
	}
	return out
}
