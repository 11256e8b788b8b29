/** The folder of this package's code (`src/` here). `undefined` in a bundle. */
const ownFolder = /(?:at |\()([^()\n]+[\\/])internal[\\/]stack\.\w+:\d/.exec(new Error().stack ?? '')?.[1]

const isOwn = (line: string): boolean =>
  /[\\/]node_modules[\\/]media-webhooks[\\/]/.test(line) || (ownFolder !== undefined && line.includes(ownFolder))

export const isFrame = (line: string): boolean => /^\s+at /.test(line)

/** Drops this package's frames, the same for every handler. */
export const withoutOwnFrames = (stack: string): string =>
  stack
    .split('\n')
    .filter((line) => !isFrame(line) || !isOwn(line))
    .join('\n')

/** Limits of {@link userFrames}. Only the end of a stack is searched: the message before it can fill a page. */
const limits = { frames: 10, characters: 1_500, stackCharacters: 10_000 }

/** The frames in the user's own code, innermost first: no Node, no packages, not us. */
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
