# Homebrew. packaging/fill.sh fills in what @...@ stands for.
class Gnntop < Formula
  desc "Live profiler in the terminal for training runs, graph neural networks first"
  homepage "@ADDRESS@"
  url "@ADDRESS@/releases/download/v@VERSION@/gnntop-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "cargo", "install", *std_cargo_args
    generate_completions_from_executable(bin/"gnntop", "completions")
    man1.mkpath
    system bin/"gnntop", "man", man1
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gnntop --version")
    system bin/"gnntop", "train", "pna", "--steps", "5", "--record", "a.gnntop"
    assert_match "forward", shell_output("#{bin}/gnntop report a.gnntop")
  end
end
