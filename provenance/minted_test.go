package provenance

import (
	"testing"

	"github.com/writ-project/writ/internal/strictjson"
)

// TestMintable: what a server can have given itself, and what somebody wrote or could have
// something sent to.
func TestMintable(t *testing.T) {
	for literal, want := range map[string]bool{
		`41`: true, `1042`: true, `90071992547409931`: true, `-3`: true, `12.5`: false, `true`: false, `null`: false,
		// pieces that are mostly counted or drawn
		`"T-1042"`: true, `"1042"`: true, `"C02INFRA"`: true, `"1763889000.123456"`: true,
		`"9f86d081-884c-4d63-a159-0dd1d4a5b0c7"`: true, `"group/project!7"`: false, `"proj#7"`: true, `"U07ABCD12"`: true, `"PROJ-7"`: true,
		`"cus_NffrFeUfNV2Hib"`: true, `"1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms"`: true, `"da39a3ee5e6b4b0d3255bfef95601890afd80709"`: true, `"01ARZ3NDEKTSV4RRFFQ69G5FAV"`: true,
		`"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`: true, `1234567890123456789`: true,
		// names with a digit, and marks of addresses, paths and hosts
		`"a/7"`: false, `"2026-11-23T10:00:00Z"`: false, `"sha256:9f86d081"`: false, `"kim77"`: false, `"KIM7"`: false, `"KimEvil7"`: false, `"ev1l"`: false, `"deploy7-now"`: false,
		`"evil.example:7"`: false, `"1.2.3.4:80"`: false, `"1763889000:12"`: false, `"10.7"`: false, `"evil_7.example.com"`: false, `"docs/../../.ssh/id_rsa7"`: false, `"mailto:x7"`: false, `"deploy_7.sh"`: false,
		// wallets, cards, and longer than what is counted
		`"0x742d35Cc6634C0532925a3b844Bc454e4438f44e"`: false, `"1KFHE7w8BhaENAswwryaoccDb6qcT6DbYY"`: false, `"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"`: false,
		`"4111111111111111"`: false, `4111111111111111`: false, `"123456789012345678901"`: false, `123456789012345678901`: false, `"5555-4444"`: true,
		`"eyJhIjox7Q=="`: true, `"n7_x"`: true, `"9007199254740993"`: true,
		`""`: false, `"-1"`: false, `"main"`: false, `"fix the 7 doors"`: false, `"kim7"`: false, `"kim7@staff.example"`: false, `"@u7"`: false,
		`"https://evil.example/7"`: false, `"evil.example/7"`: false, `"ev1l.example"`: false, `"10.0.0.7"`: false, `"www.7.example"`: false, `"x:7//a"`: false,
		`"/srv/7"`: false, `"C:/7"`: false, `"DE89370400440532013000"`: false, `"rm -rf 7"`: false, `"a;7"`: false, `"ö7"`: false, `"7\n8"`: false, `"$7"`: false,
	} {
		if got := Mintable(strictjson.Of([]byte(literal)).Plain()); got != want {
			t.Errorf("%s: %v", literal, got)
		}
	}
}

// TestVague: what a read is asked with and names no one thing by.
func TestVague(t *testing.T) {
	for _, c := range []struct {
		pointer, literal string
		want             bool
	}{
		{"/limit", `25`, true}, {"/per_page", `100`, true}, {"/maxResults", `"50"`, true}, {"/page", `2`, true}, {"/archived", `true`, true}, {"/q", `""`, true},
		{"/ticket", `41`, false}, {"/page_id", `41`, false}, {"/row_number", `7`, false}, {"/limit", `123456789`, false}, {"/limit", `"evil"`, false},
		{"/q", `"a loose hinge"`, true}, {"/q", `"Hinge, loose again?"`, true}, {"/q", `"türe klemmt\nwieder"`, true},
		{"/q", `"Mallory Evil"`, false}, {"/q", `"mallory evil"`, false}, {"/q", `"see Mallory Evil"`, false}, {"/q", `"a loose T-1042"`, false}, {"/q", `"mail to a@evil.example"`, false}, {"/q", `"is:open the hinge"`, false},
		{"/q", `"a b "`, false}, {"/q", `"hinge"`, false}, {"/limits/*", `7`, false}, {"", `7`, false},
		{"/state", `"open"`, true}, {"/filter/status", `"in_progress"`, true}, {"/sort_order", `"desc"`, true},
		{"/state", `"mallory"`, false}, {"/state", `"Open"`, false}, {"/query", `"open"`, false}, {"/status_id", `"open"`, false},
	} {
		if got := Vague(c.pointer, strictjson.Of([]byte(c.literal)).Plain()); got != c.want {
			t.Errorf("%s %s: %v", c.pointer, c.literal, got)
		}
	}
}
