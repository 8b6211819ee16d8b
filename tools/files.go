package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentd/redact"
	"agentd/session"
)

const (
	defaultLines = 2000
	maxFile      = 10 << 20 // bytes of a file that is written or edited
)

// files are the file tools of a workspace.
type files struct{ dir string }

func pathParameter() parameter {
	return parameter{name: "path", kind: "string", about: "path relative to the workspace", required: true}
}

func (f files) readTool(mask *redact.Redactor) *builtin {
	return &builtin{
		name: "read_file",
		about: fmt.Sprintf("Read lines of a text file of the workspace: at most %d lines and %d KiB at once. A note in brackets at the end says if there is more.",
			defaultLines, outputLimit>>10),
		effect: session.Read,
		parameters: []parameter{
			pathParameter(),
			{name: "offset", kind: "integer", min: 1, about: "first line to read, from 1"},
			{name: "limit", kind: "integer", min: 1, max: defaultLines, about: "how many lines to read"},
		},
		run: func(_ context.Context, _ Call, a arguments) (Result, error) {
			r := f.with(a.text["path"], func(root *os.Root, path string) Result {
				return read(root, path, a.number("offset", 1), a.number("limit", defaultLines))
			})
			r.Text = mask.String(r.Text)
			return r, nil
		},
	}
}

func (f files) writeTool() *builtin {
	return &builtin{
		name:   "write_file",
		about:  "Write a file of the workspace whole: make it, with its folders, or replace what is in it.",
		effect: session.Idempotent,
		parameters: []parameter{
			pathParameter(),
			{name: "content", kind: "string", about: "all that the file shall contain", required: true},
		},
		run: func(_ context.Context, _ Call, a arguments) (Result, error) {
			content := a.text["content"]
			if len(content) > maxFile {
				return failed("The content has %d bytes; more than %d MiB are not written.", len(content), maxFile>>20), nil
			}
			return f.with(a.text["path"], func(root *os.Root, path string) Result {
				made, err := replace(root, path, []byte(content))
				if err != nil {
					return failedOn(path, "write", err)
				}
				verb := "Replaced"
				if made {
					verb = "Made"
				}
				return Result{Text: fmt.Sprintf("%s %s (%d bytes).", verb, path, len(content))}
			}), nil
		},
	}
}

func (f files) editTool() *builtin {
	return &builtin{
		name:   "edit_file",
		about:  "Replace one piece of text in a file of the workspace. The old text must be in the file exactly once; give enough of what is around it.",
		effect: session.Unknown,
		parameters: []parameter{
			pathParameter(),
			{name: "old", kind: "string", about: "the text to replace, exactly as it is in the file", required: true},
			{name: "new", kind: "string", about: "the text to put there", required: true},
		},
		run: func(_ context.Context, _ Call, a arguments) (Result, error) {
			return f.with(a.text["path"], func(root *os.Root, path string) Result {
				return edit(root, path, a.text["old"], a.text["new"])
			}), nil
		},
	}
}

// with opens the workspace and checks the path. All access goes through the
// root, which follows no link out of it.
func (f files) with(path string, do func(*os.Root, string) Result) Result {
	if path == "" || strings.ContainsRune(path, 0) {
		return failed("The path is empty or not a path.")
	}
	rel := filepath.Clean(path)
	if filepath.IsAbs(rel) {
		abs, err := filepath.Abs(f.dir)
		if err != nil {
			return failed("Cannot find the workspace: %v.", err)
		}
		if rel, err = filepath.Rel(abs, rel); err != nil {
			return failedOn(path, "open", errOutside)
		}
	}
	if !filepath.IsLocal(rel) {
		return failedOn(path, "open", errOutside)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return failed("Cannot open the workspace: %v.", err)
	}
	defer root.Close()
	return do(root, rel)
}

var errOutside = errors.New("it is outside the workspace, which is not allowed")

// failedOn says in the model's terms why a path could not be used.
func failedOn(path, verb string, err error) Result {
	reason := err.Error()
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "there is no such file"
	case errors.Is(err, syscall.EISDIR):
		reason = "it is a folder"
	case errors.As(err, &p):
		reason = p.Err.Error()
		if strings.Contains(reason, "escapes") { // os.Root has no exported error for it
			reason = errOutside.Error()
		}
	}
	return failed("Cannot %s %s: %s.", verb, path, reason)
}

// open opens a regular file. O_NONBLOCK keeps a pipe from blocking us before
// we see that it is one.
func open(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = syscall.EISDIR
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	default:
		return file, info, nil
	}
	_ = file.Close()
	return nil, nil, err
}

func read(root *os.Root, path string, offset, limit int) Result {
	file, info, err := open(root, path)
	if err != nil {
		return failedOn(path, "read", err)
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 64<<10)
	if head, _ := in.Peek(8 << 10); binary(head) {
		return failed("Cannot read %s: it is a binary file of %d bytes.", path, info.Size())
	}
	l, err := readLines(in, offset, limit)
	if err != nil {
		return failedOn(path, "read", err)
	}
	if l.seen < offset && offset > 1 {
		return failed("%s has only %d lines.", path, l.seen)
	}
	text := clean(string(l.text))
	switch {
	case l.cut:
		text += fmt.Sprintf("\n[line %d is cut here: it is too long to show]", l.seen)
	case l.more:
		text = strings.TrimSuffix(text, "\n") + fmt.Sprintf("\n[lines %d to %d; there is more: go on with offset %d]", offset, l.seen, l.seen+1)
	case text == "":
		text = "(the file is empty)"
	}
	return Result{Text: text}
}

// lines is a part of a file.
type lines struct {
	text []byte
	seen int  // number of the last line that is in text, or was passed over
	cut  bool // that line is not in text as a whole
	more bool // other lines follow
}

// readLines reads limit lines from line offset on, up to outputLimit bytes.
func readLines(in *bufio.Reader, offset, limit int) (lines, error) {
	var l lines
	inside := false // a line that is longer than the reader's buffer
	for {
		piece, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return l, err
		}
		if len(piece) == 0 {
			return l, nil
		}
		if !inside && l.seen == offset+limit-1 {
			l.more = true
			return l, nil
		}
		room := outputLimit - len(l.text)
		wanted := inside && l.seen >= offset || !inside && l.seen+1 >= offset
		if wanted && !inside && len(piece) > room && len(l.text) > 0 {
			l.more = true
			return l, nil
		}
		if !inside {
			l.seen++
		}
		if wanted {
			l.text = append(l.text, piece[:min(len(piece), room)]...)
			if l.cut = len(piece) > room; l.cut {
				return l, nil
			}
		}
		inside = err != nil
	}
}

// binary guesses from the beginning of a file.
func binary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	bad := 0
	for rest := head; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 && len(rest) >= utf8.UTFMax {
			bad++
		}
		rest = rest[n:]
	}
	return bad > len(head)/10
}

func edit(root *os.Root, path, before, after string) Result {
	switch before {
	case "":
		return failed("The old text is empty. To make a file, use write_file.")
	case after:
		return failed("The old and the new text are the same: nothing to do.")
	}
	file, info, err := open(root, path)
	if err != nil {
		return failedOn(path, "edit", err)
	}
	defer file.Close()
	if info.Size() > maxFile {
		return failed("Cannot edit %s: it has %d bytes, more than %d MiB.", path, info.Size(), maxFile>>20)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return failedOn(path, "read", err)
	}
	switch n := bytes.Count(data, []byte(before)); {
	case n == 0 && bytes.Contains(data, []byte(strings.ReplaceAll(before, "\n", "\r\n"))):
		return failed("The old text is not in %s as given: the file has CRLF line ends. Nothing was changed.", path)
	case n == 0:
		return failed("The old text is not in %s. Nothing was changed. Read the file again: white space counts.", path)
	case n > 1:
		return failed("The old text is in %s %d times. Nothing was changed. Give more of the text around the place.", path, n)
	}
	data = bytes.Replace(data, []byte(before), []byte(after), 1)
	if _, err := replace(root, path, data); err != nil {
		return failedOn(path, "write", err)
	}
	return Result{Text: fmt.Sprintf("Edited %s.", path)}
}
