//! Measures Kustomizations and their sources, beside Flux's own controller where it is built, and the API server alone.

use anyhow::Result;
use testkit::flux_controllers::KUSTOMIZE;

use super::{
    measure::print,
    pairs::{Figures, Load, measure, original},
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Loads, which are measured one after another: the number of pairs of GitRepository and Kustomization; `x` and the number of
    /// ConfigMaps of each; `@1` for one GitRepository for all
    #[arg(long, value_delimiter = ',', value_name = "PAIRS[xOBJECTS][@1]", value_parser = Load::kustomizations,
          default_values = ["50", "200", "1000", "1x100", "1x1500", "1x5000", "200@1"])]
    loads: Vec<Load>,
    /// Number of creations, each on new control planes, and then of pushes; the fastest counts
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Leave out the kustomize-controller of Flux
    #[arg(long)]
    without_flux: bool,
}

pub async fn run(args: &Args) -> Result<()> {
    let flux = match args.without_flux {
        true => None,
        false => KUSTOMIZE.find()?,
    };
    if flux.is_none() && !args.without_flux {
        print("Flux's kustomize-controller isn't built (make flux-consumers): it is left out");
    }
    for load in &args.loads {
        let figures: Figures = Box::pin(measure(*load, args.rounds)).await?;
        print(&figures.table());
        if let Some(program) = &flux {
            let original = Box::pin(original::measure(*load, program)).await?;
            print(&original.lines(figures.times()));
        }
    }
    Ok(())
}
