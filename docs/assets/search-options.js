// The search takes a `-` in front of a word for "without it": `--pascal-heads` is looked up as "pascal heads".
for (const kind of new Set([window.Worker, window.IFrameWorker])) {
  const post = kind.prototype.postMessage;
  kind.prototype.postMessage = function (message, ...more) {
    if (message.type === 2) {
      message.data = message.data.replace(/(^|\s)--?(\w[\w-]*)/g, (_, space, name) => `${space}"${name.replace(/-/g, " ")}"`);
    }
    return post.call(this, message, ...more);
  };
}
