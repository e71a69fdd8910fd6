//! `make demo`: a Git push becomes running workloads, on a real control plane.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use clap::Parser;
use e2e::{
    foreign, shop,
    stage::Stage,
    world::{CONTROLLERS, World},
};

/// Plays the whole story on a real control plane, and says what was observed.
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Args {
    /// Leave everything running at the end, and print what to try.
    #[arg(long)]
    keep: bool,
    /// A folder that becomes the Git repository, instead of the bundled example.
    #[arg(long, value_name = "DIR", requires = "target")]
    example: Option<PathBuf>,
    /// The folder of the kluctl project in the example.
    #[arg(long, value_name = "SUBDIR", default_value = ".")]
    project: String,
    /// The targets to deploy, comma separated.
    #[arg(long, value_name = "NAME[,NAME]")]
    target: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    // Two providers are linked in, so one has to be chosen.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut stage = Stage::new();
    let played = play(&mut stage, &args).await;
    stage.say(&stage.table());
    match played {
        Ok(()) if stage.all_observed() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => {
            stage.say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn play(stage: &mut Stage, args: &Args) -> Result<()> {
    let mut world = None;
    stage
        .step(
            "a control plane starts (etcd, kube-apiserver, controller-manager, scheduler, kwok)",
            async {
                let started = World::bare().await?;
                let seen = format!("{}, with CRDs and RBAC", started.plane.server());
                world = Some(started);
                Ok(seen)
            },
        )
        .await?;
    let Some(mut world) = world else {
        bail!("there is no control plane")
    };
    stage
        .step("the controllers start, each as its own service account", async {
            for name in CONTROLLERS {
                world.start(name, &[]).await?;
            }
            Ok(CONTROLLERS.join(", "))
        })
        .await?;
    let played = match &args.example {
        Some(example) => {
            let targets = args.target.as_deref().unwrap_or_default().split(',').collect();
            foreign::play(
                stage,
                &world,
                &foreign::Project {
                    example,
                    path: &args.project,
                    targets,
                },
            )
            .await
        }
        None => shop::play(stage, &world).await,
    };
    if played.is_err() {
        tell_logs(stage, &world);
    }
    if args.keep {
        keep(
            stage,
            &world,
            if args.example.is_some() { "example" } else { "shop" },
        )
        .await?;
    }
    played?;
    world.stop().await
}

/// Shows the last words of each controller, for a step that failed.
fn tell_logs(stage: &Stage, world: &World) {
    for controller in &world.controllers {
        let log = controller.log();
        let lines: Vec<&str> = log.lines().rev().take(15).collect();
        stage.say(&format!("\n-- {} last said:", controller.name()));
        for line in lines.iter().rev() {
            stage.say(line);
        }
    }
}

async fn keep(stage: &Stage, world: &World, repository: &str) -> Result<()> {
    stage.say(&format!(
        "\nEverything is still running. In another terminal:\n\n  export KUBECONFIG={}\n  \
         kubectl get gitrepositories,kluctldeployments -n flux-system\n  \
         kubectl describe kluctldeployment -n flux-system\n  \
         git clone {}/{repository}.git   # commit and push, and watch it roll out\n",
        world.plane.kubeconfig().display(),
        world.git.origin(),
    ));
    for controller in &world.controllers {
        stage.say(&format!(
            "  {}: log {}, metrics http://{}/metrics",
            controller.name(),
            controller.log_file().display(),
            controller.addresses().metrics
        ));
    }
    stage.say("\nCtrl-C ends it all.");
    tokio::signal::ctrl_c().await?;
    Ok(())
}
