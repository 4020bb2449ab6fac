# Nix, from a checkout: nix-build --expr '(import <nixpkgs> { }).callPackage ./packaging/package.nix { }'
# For nixpkgs, src becomes fetchFromGitHub, and cargoLock a cargoHash (docs/releasing.md).
{
  lib,
  rustPlatform,
  installShellFiles,
}:

let
  manifest = (lib.importTOML ../Cargo.toml).workspace.package;
in
rustPlatform.buildRustPackage {
  pname = "gnntop";
  inherit (manifest) version;
  src = lib.cleanSource ../.;
  cargoLock.lockFile = ../Cargo.lock;
  cargoBuildFlags = [ "--package=gnntop" ];
  nativeBuildInputs = [ installShellFiles ];
  # They start Python programs and terminals, for which the sandbox has no room.
  doCheck = false;

  postInstall = ''
    mkdir man && $out/bin/gnntop man man && installManPage man/*
    for shell in bash zsh fish; do $out/bin/gnntop completions $shell >gnntop.$shell; done
    installShellCompletion gnntop.{bash,zsh,fish}
  '';

  doInstallCheck = true;
  installCheckPhase = "$out/bin/gnntop --version";

  meta = {
    description = "A live profiler in the terminal for training runs, graph neural networks first";
    license = with lib.licenses; [
      mit
      asl20
    ];
    mainProgram = "gnntop";
    platforms = lib.platforms.linux;
  };
}
