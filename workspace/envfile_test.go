package workspace

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agentd/exitcodes"
)

func TestReadEnvFile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, content string
		want          map[string]string
	}{
		{"empty", "", map[string]string{}},
		{"plain", "A=1\nB_2=two words\n", map[string]string{"A": "1", "B_2": "two words"}},
		{"no newline at the end", "A=1", map[string]string{"A": "1"}},
		{"spaces", "  A = 1  \n\tB\t=\t2\t\n", map[string]string{"A": "1", "B": "2"}},
		{"export", "export A=1\nexport\tB=2\nexport   C=3\nexport=4", map[string]string{"A": "1", "B": "2", "C": "3", "export": "4"}},
		{"comments", "# x=1\n\n  # y\nA=1 # z\nB=a#b\nC=#c\nD= # d\n", map[string]string{"A": "1", "B": "a#b", "C": "", "D": ""}},
		{"empty values", "A=\nB=''\nC=\"\"\n", map[string]string{"A": "", "B": "", "C": ""}},
		{"nothing is expanded", "A=$HOME/${X}`id`$(id)\nB=\"$HOME ${X} $(id)\"\nC='$HOME'", map[string]string{
			"A": "$HOME/${X}`id`$(id)", "B": "$HOME ${X} $(id)", "C": "$HOME",
		}},
		{"single quotes", `A='a\n"b" # c' # d`, map[string]string{"A": `a\n"b" # c`}},
		{"double quotes", `A="a\n\t\r\"\\\$\` + "`" + `\x # b" # c`, map[string]string{"A": "a\n\t\r\"\\$`\\x # b"}},
		{"quotes within", `A=it's "fine"`, map[string]string{"A": `it's "fine"`}},
		{"backslash", `A=C:\new\`, map[string]string{"A": `C:\new\`}},
		{"several lines", "A=\"-----BEGIN\nabc=\n-----END\"\nB='x\n\ny'\nC=1", map[string]string{"A": "-----BEGIN\nabc=\n-----END", "B": "x\n\ny", "C": "1"}},
		{"CRLF", "A=1\r\nB=\"x\r\ny\"\r\nC='z' # c\r\n\r\n# d\r\n", map[string]string{"A": "1", "B": "x\ny", "C": "z"}},
		{"BOM", "\ufeffA=1", map[string]string{"A": "1"}},
		{"equals signs", "A=b=c==", map[string]string{"A": "b=c=="}},
		{"last wins", "A=1\nA=2\n", map[string]string{"A": "2"}},
		{"bytes", "A=\xff\n", map[string]string{"A": "\xff"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), ".env")
			write(t, file, tt.content)
			got, err := ReadEnvFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvFileMistakes(t *testing.T) {
	t.Parallel()
	const name = "what stands before = is not a variable name: letters, digits and _, starting with a letter or _"
	tests := []struct{ name, content, want string }{
		{"no equals sign", "A=1\n\nhunter2\n", ".env:3 no = in the line: write KEY=VALUE"},
		{"no name", "=hunter2", ".env:1 " + name},
		{"digit", "1A=hunter2", ".env:1 " + name},
		{"hyphen", "A-B=hunter2", ".env:1 " + name},
		{"two words", "set A=hunter2", ".env:1 " + name},
		{"shell", "A=1\nif [ \"$x\" = hunter2 ]; then\n", ".env:2 " + name},
		{"open quote", "A='x'\nB=\"hunter2\n\nC=1\n", ".env:2 a quote (\") is not closed"},
		{"after the quote", "A='x\ny'hunter2\n", ".env:2 text after the closing quote: put all of the value between the quotes"},
		{"NUL", "A=hunter2\x00\n", ".env:1 the value of A holds a NUL character"},
		{"reserved", "AGENTD_RUN_ID=hunter2\n", ".env:1 AGENTD_RUN_ID: agentd sets this variable itself"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), ".env")
			write(t, file, tt.content)
			_, err := ReadEnvFile(file)
			if err == nil || !strings.HasSuffix(err.Error(), "/"+tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the secret: %v", err)
			}
			if exitcodes.From(err) != exitcodes.Config {
				t.Errorf("code %d", exitcodes.From(err))
			}
		})
	}
}

// Whatever a value is, a file that quotes it gives it back.
func TestQuotedValuesComeBack(t *testing.T) {
	t.Parallel()
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", `\r`)
	rapid.Check(t, func(r *rapid.T) {
		value := strings.ReplaceAll(rapid.String().Draw(r, "value"), "\x00", "")
		vars, err := parseEnv(".env", "A=\""+escape.Replace(value)+"\" # c\nB=1\n")
		if err != nil || vars["A"] != value || vars["B"] != "1" {
			r.Errorf("got %q, %v; want %q", vars, err, value)
		}
	})
}

func TestVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".env"), "A=file\nB=file\nC=file\n")
	write(t, filepath.Join(dir, "more.env"), "B=more\nC=more\n")
	j := Job{Agent: "bob", Name: "a", Dir: dir, EnvFiles: []string{".env", "-gone.env", ".env.local", "more.env"}, Env: map[string]string{"C": "table", "D": "table"}}
	vars, secrets, err := j.Variables()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"A": "file", "B": "more", "C": "table", "D": "table"}, vars); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"file", "file", "file", "more", "more"}, secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	j.EnvFiles = []string{"gone.env"}
	if _, _, err := j.Variables(); exitcodes.From(err) != exitcodes.NoInput || !strings.Contains(err.Error(), "gone.env does not exist") {
		t.Errorf("a missing file: %v, code %d", err, exitcodes.From(err))
	}
	j.EnvFiles = []string{"-bad.env"}
	write(t, filepath.Join(dir, "bad.env"), "x")
	if _, _, err := j.Variables(); exitcodes.From(err) != exitcodes.Config {
		t.Errorf("a damaged file: %v, code %d", err, exitcodes.From(err))
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	j := Job{PassEnv: []string{"GH_TOKEN", "UNSET"}}
	got := j.Environment([]string{
		"PATH=/bin", "HOME=/home/bob", "LC_ALL=C", "GH_TOKEN=t=1", "AWS_SECRET=x", "TZ=", "nonsense", "=C:=x",
	}, map[string]string{"A": "1", "PATH": "/own"})
	want := []string{"A=1", "GH_TOKEN=t=1", "HOME=/home/bob", "LC_ALL=C", "PATH=/own", "TZ="}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
