import { suggestion } from '../../internal/suggestion.ts'
import { program } from '../help.ts'
import { type Command, type CommandGroup, defineCommand } from '../shared/command.ts'
import { UsageError } from '../shared/flags.ts'
import { fishScript } from './completion/fish.ts'
import { levelsOf } from './completion/levels.ts'
import { bashScript, zshScript } from './completion/posix.ts'

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript }
const shells = Object.keys(scripts) as (keyof typeof scripts)[]

export function completionOf(others: readonly (Command | CommandGroup)[]): Command {
  const completion = defineCommand({
    name: 'completion',
    summary: 'prints a script that completes commands and flags in your shell',
    details:
      `For bash, add this to ~/.bashrc, and for zsh the same with zsh to ~/.zshrc: eval "$(${program} completion bash)"\n` +
      `For fish, write the script to ~/.config/fish/completions/${program}.fish.`,
    positionals: [`<${shells.join('|')}>`],
    argumentWords: [shells],
    flags: {},
    json: 'print one JSON object: shell, script',
    examples: ['completion bash', `completion fish > ~/.config/fish/completions/${program}.fish`],
    async run({ positionals: [given = ''], values: { json } }, screen) {
      const shell = shells.find((each) => each === given)
      if (shell === undefined) {
        throw new UsageError(
          `there is no script for '${given}': pass one of ${shells.join(', ')}${suggestion(given, shells)}`,
        )
      }
      const script = scripts[shell](program, levelsOf([...others, completion]))
      if (json) screen.json({ shell, script })
      else screen.print(script)
      return 0
    },
  })
  return completion
}
