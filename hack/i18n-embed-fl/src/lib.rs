//! The macro `fl!` of crate i18n-embed-fl as far as crate age uses it.
//!
//! The macro of that crate inserts the arguments of a message in the random order of a `HashMap`, so that no two builds of age are equal. This one
//! inserts them in the order of the call, and leaves out the check of the messages at compile time, with the crates that it needs.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{
    Error, Expr, ExprAssign, LitStr, Result, Token,
    parse::{Parse, ParseStream},
    parse_macro_input,
    punctuated::Punctuated,
};

/// `loader, "message", name = value, ...`
struct Call {
    loader: Expr,
    message: LitStr,
    arguments: Punctuated<ExprAssign, Token![,]>,
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let loader = input.parse()?;
        input.parse::<Token![,]>()?;
        let message = input.parse()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        let arguments = Punctuated::parse_terminated(input)?;
        Ok(Self {
            loader,
            message,
            arguments,
        })
    }
}

/// Returns the statement that inserts an argument.
fn insertion(argument: &ExprAssign) -> Result<Tokens> {
    let name = match &*argument.left {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    };
    let name = name
        .ok_or_else(|| Error::new_spanned(&argument.left, "the name of an argument is not an identifier"))?;
    let (key, value) = (LitStr::new(&name.to_string(), name.span()), &argument.right);
    Ok(quote! { args.insert(#key, (#value).into()); })
}

fn expand(call: &Call) -> Result<Tokens> {
    let Call { loader, message, .. } = call;
    if call.arguments.is_empty() {
        return Ok(quote! { (#loader).get(#message) });
    }
    let insertions: Vec<Tokens> = call.arguments.iter().map(insertion).collect::<Result<_>>()?;
    Ok(quote! {
        (#loader).get_args_concrete(#message, {
            let mut args = ::std::collections::HashMap::new();
            #(#insertions)*
            args
        })
    })
}

/// Loads a message with its arguments.
#[proc_macro]
pub fn fl(input: TokenStream) -> TokenStream {
    let call = parse_macro_input!(input as Call);
    expand(&call).unwrap_or_else(Error::into_compile_error).into()
}
