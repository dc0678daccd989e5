class Interlock < Formula
  desc "Traffic control for swarms of AI agents: leases, queues, fencing tokens, tasks"
  homepage "https://github.com/interlockdev/interlock"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "{{.Download}}/interlock_{{.Version}}_darwin_arm64.tar.gz"
      sha256 "{{.darwin_arm64}}"
    end
    on_intel do
      url "{{.Download}}/interlock_{{.Version}}_darwin_amd64.tar.gz"
      sha256 "{{.darwin_amd64}}"
    end
  end

  on_linux do
    on_arm do
      url "{{.Download}}/interlock_{{.Version}}_linux_arm64.tar.gz"
      sha256 "{{.linux_arm64}}"
    end
    on_intel do
      url "{{.Download}}/interlock_{{.Version}}_linux_amd64.tar.gz"
      sha256 "{{.linux_amd64}}"
    end
  end

  def install
    bin.install "interlock", "interlock-hook"
    bash_completion.install "completions/interlock.bash" => "interlock"
    zsh_completion.install "completions/interlock.zsh" => "_interlock"
    fish_completion.install "completions/interlock.fish"
  end

  service do
    run [opt_bin/"interlock", "serve", "--data-dir", var/"interlock"]
    keep_alive true
    log_path var/"log/interlock.log"
    error_log_path var/"log/interlock.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/interlock version")
    assert_match version.to_s, shell_output("#{bin}/interlock-hook --version")
  end
end
