package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
)

// TestSessions: the sessions that were used last are listed, of all or of those that hold some
// words, and it is said how many are not.
func TestSessions(t *testing.T) {
	r := newRig(t)
	r.words = "Kim's mail"
	r.told(one, "words")
	for i := range 2*maxSessions + 50 {
		s := audit.Session{ID: fmt.Sprintf("s_%016d", i), SecretDigest: audit.Digest{byte(i), byte(i >> 8), 1}, Principal: "client:ann/8cd66802", Endpoint: "http", Created: r.now().Add(time.Duration(-1-i) * time.Minute)}
		if err := r.log.AddSession(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.log.TouchSession(t.Context(), fmt.Sprintf("s_%016d", 2*maxSessions), r.now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	r.later(2 * time.Minute) // the newest record says more of the last use than the register
	r.told("s_0000000000000099", "words")
	cookie, _, _ := r.in()
	for path, want := range map[string]struct {
		rows  int
		first string
		says  []string
	}{
		"/sessions":                        {maxSessions, "s_0000000000000099", []string{"251 more", `href="/s/` + one + `">`, "closed", "client:ann/8cd66802"}},
		"/sessions?words=kim%27s":          {1, "Kim&#39;s mail", []string{`href="/s/` + one + `"`}},
		"/sessions?words=0000000000000007": {1, "s_0000000000000007", nil},
		"/sessions?words=CLIENT:ann":       {maxSessions, "s_0000000000000099", []string{"250 more"}},
		"/sessions?words=nobody":           {0, "", []string{"No session of that name, id or owner."}},
	} {
		page := r.ask("GET", path, cookie, nil).Body.String()
		rows := strings.Split(page, `<tr><td class="when">`)[1:]
		if len(rows) != want.rows {
			t.Errorf("%s: %d rows, want %d", path, len(rows), want.rows)
		}
		if len(rows) > 0 && !strings.Contains(rows[0], want.first) {
			t.Errorf("%s begins with %s, want %s", path, rows[0], want.first)
		}
		for _, say := range want.says {
			if !strings.Contains(page, say) {
				t.Errorf("%s does not say %s", path, say)
			}
		}
	}
}
