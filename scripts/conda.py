"""Builds the conda package by a filled-in recipe, installs it into a fresh environment and runs its tests there.

    conda.py RECIPE                        only reads it
    conda.py RECIPE FOLDER [--no-licences]

No channel is asked: the whole recipe is read, but what it requires to build, above all compilers, is then left out, and
this machine's takes its place. With --no-licences the list of other people's licences is empty.
"""

import pathlib
import re
import sys

import rattler_build

# Of conda-forge's pinning: what its `stdlib("c")` stands for.
PINNING = rattler_build.VariantConfig.from_yaml("c_stdlib: [sysroot]\nc_stdlib_version: ['2.28']\n")


def read(path: pathlib.Path) -> rattler_build.RenderedVariant:
    """The recipe as it is built, of which there must be one."""
    (variant,) = rattler_build.Stage0Recipe.from_file(path).render(PINNING)
    return variant


def without_channels(path: pathlib.Path, licences: bool) -> pathlib.Path:
    """A copy of the recipe that requires nothing, in a folder of its own, which becomes a part of the package."""
    text = re.sub(r"^requirements:\n(  .*\n)+\n", "", path.read_text(), flags=re.MULTILINE)
    if not licences:
        text = re.sub(r"cargo-bundle-licenses .*", "touch THIRDPARTY.yml", text)
    copy = path.parent / "conda" / path.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(text)
    return copy


def main() -> None:
    """See above."""
    path = pathlib.Path(sys.argv[1]).resolve()
    print("requires", read(path).recipe.to_dict()["requirements"]["build"])
    if len(sys.argv) == 2:
        return
    copy = without_channels(path, "--no-licences" not in sys.argv)
    built = read(copy).run_build(
        output_dir=sys.argv[2],
        channels=[],
        no_build_id=True,
        tool_config=rattler_build.ToolConfiguration(test_strategy="native"),
        env_isolation=rattler_build.EnvironmentIsolation.CONDA_BUILD,
    )
    print("\n".join(built.log))
    print(*built.packages)


if __name__ == "__main__":
    main()
