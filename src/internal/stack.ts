/** The folder of this package's code, unless a bundle has it: `src/` here. */
const ownFolder = /(?:at |\()([^()\n]+[\\/])internal[\\/]stack\.\w+:\d/.exec(new Error().stack ?? '')?.[1]

/** Returns true for a line of a stack that is a call in this package. */
const isOwn = (line: string): boolean =>
  /[\\/]node_modules[\\/]media-webhooks[\\/]/.test(line) || (ownFolder !== undefined && line.includes(ownFolder))

const isFrame = (line: string): boolean => /^\s+at /.test(line)

/** Removes the calls in this package from a stack: every run of a handler has the same ones. */
export const withoutOwnFrames = (stack: string): string =>
  stack
    .split('\n')
    .filter((line) => !isFrame(line) || !isOwn(line))
    .join('\n')

/** Maximum size of {@link userFrames}, and of the end of a stack that is searched: its message can be a whole page. */
const limits = { frames: 10, characters: 1_500, stackCharacters: 10_000 }

/** The frames of an error's stack that are the user's code, the innermost first: none of Node, packages and this one. */
export function userFrames({ stack }: { readonly stack?: unknown }): string | undefined {
  if (typeof stack !== 'string') return undefined
  const frames = stack
    .slice(-limits.stackCharacters)
    .split('\n')
    .filter((line) => isFrame(line) && !isOwn(line) && !/[( ]node:|[\\/]node_modules[\\/]|<anonymous>\)?$/.test(line))
    .slice(0, limits.frames)
  const text = frames.map((line) => line.trim()).join('\n')
  return text === '' ? undefined : text.slice(0, limits.characters)
}
