/** Makes a function whose calls share the run in progress. */
export function shared<T, Args extends readonly unknown[]>(
  run: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  let running: Promise<T> | undefined
  return (...args) => {
    running ??= run(...args).finally(() => {
      running = undefined
    })
    return running
  }
}
