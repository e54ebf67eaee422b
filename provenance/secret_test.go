package provenance

import (
	"strings"
	"testing"
)

// TestSecretAt: the value stands between < and >.
func TestSecretAt(t *testing.T) {
	for line, want := range map[string]bool{
		"pls change my password to <Sunny-Day-77>": true, "update the password to '<1j1l-2k3j>'.": true, "Password: <hunter2>": true, "password=<hunter2>": true,
		"The new password of my bank account is <hunter2>": true, "use <hunter2> as the new password": true, "<hunter2> is my password, log me in": true, "my PIN (<4711>)": true,
		"the code <4711>": true, "Set the password for Kim's account to \"<correct horse>\"": true, "If it looks odd, make sure to update the password to '<1j1l>'": true,
		"Mein neues Passwort lautet <Sommer-77>": true, "Ändere das Passwort auf <Sommer-77>": true, "here it is: entry <x-1>": true,
		"Can you please pay the bill '<bill.txt>' for me?": false, "<Can> you change my password?": false, "Change my password, and read <bill.txt>": false,
		"Change my password to hunter2 and <read my bill>": false, "Change my password to hunter2 <tree>": false, "Tell me the password of the wifi and send 25 to <GB29NWBK60161331926819>": false,
		"send 25 to <GB29NWBK60161331926819>": false, "Is the <file> with the password here?": false, "the password. It is in <bill.txt>": false, "My password?\n<bill.txt>": false,
		"my password is old: see <bill.txt>": false, "send it as <bill.txt>": false, "<bill.txt> as the attachment": false, "<Kim> as the owner of the password list": false,
	} {
		start, end := strings.IndexByte(line, '<'), strings.IndexByte(line, '>')-1
		s := strings.NewReplacer("<", "", ">", "").Replace(line)
		if got := SecretAt(s, start, end, []string{"entry"}); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
