# Completion of millrace and millraced for fish. What can be typed says the program itself: `millrace complete`.

function __millrace_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (basename -- $words[1])
    set -l tool millrace
    string match -q '*/*' -- $words[1]; and set tool (dirname -- $words[1])/millrace
    set -l found ($tool complete -- $program $words[2..-1] (string unescape -- $current; or echo $current) 2>/dev/null)
    switch "$found[1]"
        case files
            __fish_complete_path $current
        case folders
            __fish_complete_directories $current
    end
    string join \n -- $found[2..-1]
end

complete -c millrace -f -a '(__millrace_complete)'
complete -c millraced -f -a '(__millrace_complete)'
