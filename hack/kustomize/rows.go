package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"
)

// references is one row of nameReference.
type references struct {
	resid.Gvk `json:",inline"`
	Fields    types.FsSlice `json:"fieldSpecs"`
}

// A table of field specs: the constant that holds it, its key there, and its name in Rust.
var fieldTables = []struct{ constant, key, name, doc string }{
	{"namePrefixFieldSpecs", "namePrefix", "NAME_PREFIX", "The fields that get the `namePrefix`."},
	{"nameSuffixFieldSpecs", "nameSuffix", "NAME_SUFFIX", "The fields that get the `nameSuffix`."},
	{"namespaceFieldSpecs", "namespace", "NAMESPACE", "The fields that get the `namespace`, beside metadata."},
	{"commonLabelFieldSpecs", "commonLabels", "COMMON_LABELS", "The fields that get labels, selectors included."},
	{"templateLabelFieldSpecs", "templateLabels", "TEMPLATE_LABELS", "The fields that get labels, templates included."},
	{"commonAnnotationFieldSpecs", "commonAnnotations", "COMMON_ANNOTATIONS", "The fields that get annotations."},
	{"imagesFieldSpecs", "images", "IMAGES", "The fields that name images."},
	{"replicasFieldSpecs", "replicas", "REPLICAS", "The fields that get the number of `replicas`."},
	{"varReferenceFieldSpecs", "varReference", "VAR_REFERENCE", "The fields in which vars are replaced."},
}

// rowsFile prints the transformer configuration that is in force when a kustomization brings none: as kustomize uses it,
// which is sorted by kind and not as it is written down.
func rowsFile(from module) (string, error) {
	constants, err := stringConstants(filepath.Join(from.dir, "internal/konfig/builtinpluginconsts"))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(header("The built-in transformer configuration: which fields a transformer changes, and which refer to names.", from))
	out.WriteString("use crate::fieldspec::{FieldSpec, NameReference};\n")
	for _, table := range fieldTables {
		var rows types.FsSlice
		if err := decode(constants, table.constant, table.key, &rows); err != nil {
			return "", err
		}
		sort.Sort(rows)
		fmt.Fprintf(&out, "\n/// %s\npub(crate) static %s: &[FieldSpec] = &[\n", table.doc, table.name)
		printRows(&out, rows)
		out.WriteString("];\n")
	}
	var names []references
	if err := decode(constants, "nameReferenceFieldSpecs", "nameReference", &names); err != nil {
		return "", err
	}
	sort.SliceStable(names, func(i, j int) bool { return names[i].IsLessThan(names[j].Gvk) })
	out.WriteString("\n/// The fields that refer to objects of a kind by name.\npub(crate) static NAME_REFERENCES: &[NameReference] = &[\n")
	for _, row := range names {
		fmt.Fprintf(&out, "    NameReference::rows(%s, %s),\n", gvk(row.Gvk), static(row.Kind))
	}
	out.WriteString("];\n")
	for _, row := range names {
		fmt.Fprintf(&out, "\nstatic %s: &[FieldSpec] = &[\n", static(row.Kind))
		printRows(&out, row.Fields)
		out.WriteString("];\n")
	}
	return out.String(), nil
}

func printRows(out *strings.Builder, rows types.FsSlice) {
	for _, row := range rows {
		fmt.Fprintf(out, "    FieldSpec::row(%s, %q, %t),\n", gvk(row.Gvk), row.Path, row.CreateIfNotPresent)
	}
}

func gvk(x resid.Gvk) string { return fmt.Sprintf("%q, %q, %q", x.Group, x.Version, x.Kind) }

// static names the fields that refer to a kind: TO_CONFIG_MAP.
func static(kind string) string {
	var out strings.Builder
	out.WriteString("TO")
	for _, c := range kind {
		if unicode.IsUpper(c) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToUpper(c))
	}
	return out.String()
}

// decode reads the YAML of a constant, which has this key alone, and refuses what it doesn't know.
func decode[T any](constants map[string]ast.Expr, constant, key string, into *T) error {
	text, err := evaluate(constants, constant)
	if err != nil {
		return err
	}
	var document map[string]T
	if err := yaml.UnmarshalStrict([]byte(text), &document); err != nil {
		return fmt.Errorf("%s: %w", constant, err)
	}
	value, found := document[key]
	if !found || len(document) != 1 {
		return fmt.Errorf("%s doesn't hold %s and nothing else", constant, key)
	}
	*into = value
	return nil
}

// stringConstants gives the constants of the package in a folder.
func stringConstants(dir string) (map[string]ast.Expr, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	constants := map[string]ast.Expr{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					constants[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	return constants, nil
}

// evaluate gives the text of a constant that is a literal, or a sum of literals and other constants.
func evaluate(constants map[string]ast.Expr, name string) (string, error) {
	var value func(ast.Expr) (string, error)
	value = func(expression ast.Expr) (string, error) {
		switch x := expression.(type) {
		case *ast.BasicLit:
			return strconv.Unquote(x.Value)
		case *ast.Ident:
			return evaluate(constants, x.Name)
		case *ast.BinaryExpr:
			left, err := value(x.X)
			if err != nil {
				return "", err
			}
			right, err := value(x.Y)
			return left + right, err
		}
		return "", fmt.Errorf("the constant %s is no text", name)
	}
	expression, found := constants[name]
	if !found {
		return "", fmt.Errorf("there is no constant %s", name)
	}
	return value(expression)
}
